import { UsageError } from '../../../model/errors.ts'
import { shortId } from '../../../model/id.ts'
import { isLive } from '../../../model/run.ts'
import type { Target } from '../../../model/target.ts'
import { park as parkTargets } from '../../../runtime/steering.ts'
import type { Store } from '../../../store/store.ts'
import { targetView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findTargets } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { targetStatus } from '../paper/words.ts'

export const park = defineCommand({
  name: 'park',
  summary: 'Set targets aside, whoever has them, until somebody puts them back.',
  examples: [
    'unstuck park 91bc4f2a',
    'unstuck park 91bc4f2a 7701aa3e --because "the city has moved"',
  ],
  args: { targets: argument.rest('targets: their last 8 digits, or full ids') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    if (args.targets.length === 0)
      throw new UsageError('Which targets? `unstuck show RUN` lists those in trouble.')
    const { dryRun, because } = options
    const store = await database.openExisting()
    const found = await findTargets(store, args.targets)
    const open = found.filter(({ status }) => status !== 'done' && status !== 'parked')
    const live = dryRun ? [] : await liveRunsOf(store, open)
    const ids = open.map(({ id }) => id)
    const parked = dryRun
      ? ids
      : (await parkTargets(await doorOf(store, settings), ids, because || undefined)).map(
          (one) => one.target,
        )
    const ended = dryRun ? [] : await ofThoseEnded(store, live)
    const now = await Promise.all(found.map(async ({ id }) => (await store.target(id))!))
    return {
      data: { items: now.map(targetView), parked: dryRun ? 0 : parked.length, dryRun },
      text: (paper) => {
        for (const { id, key, status } of found) {
          const word = !parked.includes(id)
            ? `stays as it is, ${targetStatus(status).text}`
            : dryRun
              ? 'would be parked'
              : 'is parked'
          paper.say(`- ${shortId(id)} ${key}: ${word}.`)
        }
        for (const { id, status } of ended)
          paper.say(`Nothing else was open in run ${shortId(id)}: it is ${status} now.`)
        if (dryRun || parked.length === 0) paper.say('Nothing was changed.')
        else {
          const wereOpen = open.every(
            ({ status }) => status === 'planned' || status === 'in_progress',
          )
          const word = wereOpen ? 'Undo' : 'To put them back in line'
          paper.say(`${word}: \`unstuck unpark ${parked.map(shortId).join(' ')}\``)
        }
      },
    }
  },
})

async function liveRunsOf(store: Store, targets: readonly Target[]): Promise<string[]> {
  const live: string[] = []
  for (const id of new Set(targets.map(({ run }) => run))) {
    if (isLive((await store.run(id))!.status)) live.push(id)
  }
  return live
}

async function ofThoseEnded(store: Store, live: readonly string[]) {
  const runs = await Promise.all(live.map(async (id) => (await store.run(id))!))
  return runs.filter(({ status }) => !isLive(status))
}
