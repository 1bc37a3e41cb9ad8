import { EXIT } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { sayRow } from '../../../core/model/run.ts'
import { checkSource } from '../../../core/model/source.ts'
import { isLost } from '../../../core/recovery/assess.ts'
import { adviseStart, type Advice } from '../../../core/recovery/advise-start.ts'
import { adviceView } from '../../../presenters/check.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../../../app/open-context.ts'
import { argument, option } from '../option.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { ago, whoWords } from '../../../presenters/format.ts'

export const check = defineCommand({
  name: 'check',
  summary: 'Before a start: start, resume, clean or wait, and why.',
  examples: [
    'unstuck check portal-a',
    'unstuck check portal-a && python scrape.py  # exit code 5: someone is at it',
    'unstuck check portal-a --age 48h --json',
  ],
  args: { source: argument.required('the source that is to start') },
  options: {
    age: option.duration(
      'AGE',
      'dead from this age on, instead of what the policy says',
      undefined,
    ),
  },

  async run({ args, options, database, settings }) {
    const { source } = args
    checkSource(source)
    const store = await database.openIfAny()
    const advice: Advice = store
      ? await adviseStart(await doorOf(store, settings), source, options.age)
      : { action: 'start', because: 'nothing has run yet', run: null, target: null, owner: null }
    const now = store ? await store.now() : Date.now()
    return {
      data: adviceView(source, advice),
      text: (paper) => print(paper, source, advice, now),
      exitCode: advice.action === 'wait' ? EXIT.alreadyRunning : EXIT.done,
    }
  },
})

const MEANS: Record<Advice['action'], string> = {
  start: 'Go ahead.',
  resume: 'It goes on where it was.',
  clean: 'A dead run is in the way: it is ended when the new one begins.',
  wait: 'Someone is at it.',
}

/** Nothing of ours starts, goes on with or ends a row of a user's own table when another begins. */
const MEANS_OF_ROW: Record<Advice['action'], string> = {
  start: 'Go ahead.',
  resume: 'There is something to go on from; your own program takes it up.',
  clean: 'A dead row is in the way: `unstuck recover` or `unstuck clean` ends it.',
  wait: 'Someone may be at it.',
}

function meaning({ action, cannot, run, owner }: Advice): string {
  if (cannot !== undefined)
    return `A dead row is in the way, and nothing here can end it. ${cannot}.`
  const isKnown = action === 'wait' && owner !== null
  return run?.adopted && !isKnown ? MEANS_OF_ROW[action] : MEANS[action]
}

function print(paper: Paper, source: string, advice: Advice, now: number): void {
  const { action, because, run, target, owner } = advice
  const ink = action === 'wait' ? 'warn' : 'good'
  paper.say({ text: action, ink }, `: ${meaning(advice)}`)
  paper.say(`${source}: ${because}.`)
  if (run) {
    const { startedAt, createdAt, status, adopted } = run
    const row = adopted ? `, ${sayRow(adopted)},` : ''
    const since = startedAt === null ? '' : `, begun ${ago(startedAt, now)}`
    const where = target && target.page > 0 ? `, page ${target.page} is saved` : ''
    paper.say(
      `Run ${shortId(run.id)}${row} is ${status}, made ${ago(createdAt, now)}${since}${where}.`,
    )
  }
  if (owner) {
    const held = isLost(owner.reading) ? 'Last held' : 'Held'
    const beat = ago(owner.worker.lastBeatAt, now)
    paper.say(`${held} by ${whoWords(owner.evidence)}, last sign of life ${beat}.`)
  }
  if (run && action !== 'start') {
    paper.say({ text: `More: \`unstuck explain ${shortId(run.id)}\``, ink: 'dim' })
  }
}
