import { defineCommand, presentList, type CommandResult } from '../../../contracts/command.ts'
import { argument, defaultsTo, option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { NotFoundError, UsageError } from '../../../core/model/errors.ts'
import { LIVE_STATUSES, type Run } from '../../../core/model/run.ts'
import { TARGET_STATUSES } from '../../../core/model/target.ts'
import type { Store, TargetFilter } from '../../../core/store/store.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { findRun } from '../../../presenters/find.ts'
import { presentTargets } from '../../../presenters/targets.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'

const PAGE_SIZE = 50
const BATCH_SIZE = 500

export const command = defineCommand({
  examples: [
    'unstuck targets directory --status failed parked',
    'unstuck targets 4f2a91bc --group CA --limit 200',
    "unstuck targets directory --format jsonl | jq -r 'select(.attempts > 1) | .key'",
  ],
  args: { run: argument.optional('a run or a source; default: the live run, else the newest') },
  options: {
    status: option.choices(TARGET_STATUSES, 'only in these statuses'),
    group: SHARED_OPTIONS.group,
    limit: defaultsTo('50; as a stream: all', SHARED_OPTIONS.limit(undefined)),
    after: SHARED_OPTIONS.after,
    format: option.choice(['jsonl'], 'the format of the stream', undefined),
  },

  async run({ args, options, json, database, output }): Promise<CommandResult | void> {
    const { status, group, limit, after, format } = options
    if (json && format) throw new UsageError('Give either --json or --format.')
    const store = await database.openExisting()
    const run = await (args.run === undefined
      ? onlyRun(store)
      : findRun(store, args.run, 'targets'))
    const warning = group && (await describeUnknownGroups(store, [run], [group]))
    if (warning) output.note(warning)
    const filter = { statuses: status.length > 0 ? status : undefined, group, after }
    if (!format) {
      const page = { ...filter, limit: limit ?? PAGE_SIZE }
      return presentList(presentTargets(run, await store.targets(run.id, page)))
    }
    for await (const text of jsonLines(store, run, filter, limit ?? Infinity))
      await output.write(text)
  },
})

/** Reads a batch only when the one before it was consumed. */
async function* jsonLines(
  store: Store,
  run: Run,
  filter: Omit<TargetFilter, 'limit'>,
  max: number,
): AsyncGenerator<string> {
  let { after } = filter
  for (let left = max; left > 0; left -= BATCH_SIZE) {
    const page = { ...filter, after, limit: Math.min(BATCH_SIZE, left) }
    const { items, next } = presentTargets(run, await store.targets(run.id, page)).view
    yield items.map((item) => `${safeJson(item)}\n`).join('')
    if (next === null) return
    after = next
  }
}

/** Returns the live run, or the newest one where none is live. */
async function onlyRun(store: Store): Promise<Run> {
  const live = (await store.runs({ statuses: LIVE_STATUSES, limit: 2 })).items
  if (live.length > 1)
    throw new UsageError(
      'Several runs are live: name a run or a source. `unstuck status` lists them.',
    )
  const run = live[0] ?? (await store.runs({ limit: 1 })).items[0]
  if (!run) throw new NotFoundError('run yet', '`unstuck work crawl.ts` starts one.')
  return run
}
