import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import { describeRow } from '../../../core/model/run.ts'
import { checkSource } from '../../../core/model/source.ts'
import { isLost } from '../../../core/recovery/assess.ts'
import { adviseStart, type StartAdvice } from '../../../core/recovery/advise-start.ts'
import { adviceView } from '../../../presenters/check.ts'
import { openContext } from '../../../app/open-context.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { formatAgo, formatProcess } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
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
    const store = await database.openIfExists()
    const advice: StartAdvice = store
      ? await adviseStart(await openContext(store, settings), source, options.age)
      : { action: 'start', because: 'nothing has run yet', run: null, target: null, owner: null }
    const now = store ? await store.now() : Date.now()
    return {
      data: adviceView(source, advice),
      print: (writer) => print(writer, source, advice, now),
      exitCode: advice.action === 'wait' ? EXIT.alreadyRunning : EXIT.done,
    }
  },
})

const MEANING: Record<StartAdvice['action'], string> = {
  start: 'Go ahead.',
  resume: 'It goes on where it was.',
  clean: 'A dead run is in the way: it is ended when the new one begins.',
  wait: 'Someone is at it.',
}

/** Nothing of ours starts, goes on with or ends a row of a user's own table when another begins. */
const ROW_MEANING: Record<StartAdvice['action'], string> = {
  start: 'Go ahead.',
  resume: 'There is something to go on from; your own program takes it up.',
  clean: 'A dead row is in the way: `unstuck recover` or `unstuck clean` ends it.',
  wait: 'Someone may be at it.',
}

function describeAdvice({ action, blockedBy, run, owner }: StartAdvice): string {
  if (blockedBy !== undefined)
    return `A dead row is in the way, and nothing here can end it. ${blockedBy}.`
  const isKnown = action === 'wait' && owner !== null
  return run?.adopted && !isKnown ? ROW_MEANING[action] : MEANING[action]
}

function print(writer: TextWriter, source: string, advice: StartAdvice, now: number): void {
  const { action, because, run, target, owner } = advice
  const style = action === 'wait' ? 'warn' : 'good'
  writer.paragraph({ text: action, style }, `: ${describeAdvice(advice)}`)
  writer.paragraph(`${source}: ${because}.`)
  if (run) {
    const { startedAt, createdAt, status, adopted } = run
    const row = adopted ? `, ${describeRow(adopted)},` : ''
    const since = startedAt === null ? '' : `, begun ${formatAgo(startedAt, now)}`
    const where = target && target.page > 0 ? `, page ${target.page} is saved` : ''
    writer.paragraph(
      `Run ${shortId(run.id)}${row} is ${status}, made ${formatAgo(createdAt, now)}${since}${where}.`,
    )
  }
  if (owner) {
    const held = isLost(owner.assessment) ? 'Last held' : 'Held'
    const beat = formatAgo(owner.worker.lastHeartbeatAt, now)
    writer.paragraph(`${held} by ${formatProcess(owner.evidence)}, last sign of life ${beat}.`)
  }
  if (run && action !== 'start') {
    writer.paragraph({ text: `More: \`unstuck explain ${shortId(run.id)}\``, style: 'dim' })
  }
}
