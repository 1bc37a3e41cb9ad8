import { NotFoundError } from '../../../core/model/errors.ts'
import { LIVE_STATUSES, type Run } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { measureProgress, presentProgress, PROGRESS_BY } from '../../../presenters/progress.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineCommand, presentList } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const LIVE_MAX = 300

export const command = defineCommand({
  examples: [
    'unstuck progress --watch',
    'unstuck progress directory --group CA TX',
    'unstuck progress 4f2a91bc --by page',
  ],
  args: { run: argument.optional('a run or a source; default: all live runs, else the newest') },
  options: {
    group: SHARED_OPTIONS.groups,
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
        ? await selectRuns(store)
        : [await findRun(store, args.run, 'progress')]
    const found = await measureProgress(store, runs, { groups: options.group, by: options.by })
    return presentList(presentProgress(found, now))
  },
})

async function selectRuns(store: Store): Promise<Run[]> {
  const live = (await store.runs({ statuses: LIVE_STATUSES, limit: LIVE_MAX })).items
  if (live.length > 0) return live
  const { items } = await store.runs({ limit: 1 })
  if (items.length === 0) {
    throw new NotFoundError('run yet', '`unstuck runs` lists what there is.')
  }
  return items
}
