import { NotFoundError } from '../../../core/model/errors.ts'
import { LIVE_STATUSES, type Run } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { measureProgress, presentProgress, PROGRESS_BY } from '../../../presenters/progress.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineCommand, presentList } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

const LIVE_MAX = 300

export const command = defineCommand({
  examples: [
    'unstuck progress --watch',
    'unstuck progress --source directory --group CA TX',
    'unstuck progress 4f2a91bc --by page',
  ],
  args: { run: argument.optional('the run; without it all live runs, else the newest') },
  options: {
    source: option.text('SOURCE', 'the live run of this source, else its newest'),
    group: option.texts('GROUP', 'only targets of these groups'),
    by: option.choice(
      PROGRESS_BY,
      'group, page or status; by group where there are groups',
      undefined,
    ),
  },
  watch: true,

  async run({ args, options, database }) {
    const store = await database.openExisting()
    const now = await store.now()
    const runs =
      args.run === undefined
        ? await selectRuns(store, options.source)
        : [await findRun(store, args.run)]
    const found = await measureProgress(store, runs, { groups: options.group, by: options.by })
    return presentList(presentProgress(found, now))
  },
})

async function selectRuns(store: Store, source: string | undefined): Promise<Run[]> {
  const live = (await store.runs({ source, statuses: LIVE_STATUSES, limit: LIVE_MAX })).items
  if (live.length > 0) return live
  const { items } = await store.runs({ source, limit: 1 })
  if (items.length === 0) {
    throw new NotFoundError(
      source === undefined ? 'run yet' : `run of ${source}`,
      '`unstuck runs` lists what there is.',
    )
  }
  return items
}
