import { defineCommand, presentAction } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Store } from '../../../core/store/store.ts'
import { acknowledge, findAcknowledgeable } from '../../../presenters/acknowledge.ts'
import { actionResultView } from '../../../presenters/action-result.ts'
import { findRunOrTarget, unknownSource } from '../../../presenters/find.ts'
import { plural } from '../../../presenters/format.ts'
import { confirm } from '../confirm.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'

type Selection = { readonly runs: readonly Run[]; readonly targets: readonly Target[] }

export const command = defineCommand({
  examples: [
    'unstuck acknowledge 4f2a91bc --because "the site is gone"',
    'unstuck acknowledge 91bc4f2a 7701aa3e  # single targets',
    'unstuck acknowledge --source shop --group CA',
    'unstuck acknowledge --all --yes',
    'unstuck acknowledge 4f2a91bc --undo',
  ],
  args: {
    what: argument.rest('runs, targets or sources: their last 8 digits, full ids, or names'),
  },
  options: {
    source: SHARED_OPTIONS.source,
    group: SHARED_OPTIONS.groups,
    all: option.flag('everything that failed, is stuck or parked'),
    undo: option.flag('remove the mark: it needs attention again'),
    because: SHARED_OPTIONS.because,
    dryRun: SHARED_OPTIONS.dryRun,
    yes: SHARED_OPTIONS.yes,
  },

  async run({ args, options, openContext, output }) {
    const ways = [args.what.length > 0, options.source !== undefined, options.all]
    if (ways.filter(Boolean).length !== 1) {
      throw new UsageError(
        'What? Give runs or targets, or --source SOURCE, or --all. `unstuck status` lists what needs attention.',
      )
    }
    const context = await openContext()
    const { store } = context
    const isNamed = args.what.length > 0
    const selection = isNamed ? await find(store, args.what) : await search(store, options)
    if (options.group.length > 0 && selection.targets.length > 0)
      throw new UsageError('--group goes with runs, not with single targets.')
    const warning = await describeUnknownGroups(store, selection.runs, options.group)
    if (warning && selection.runs.length > 0) output.note(warning)
    const groups = options.group.length > 0 ? options.group : undefined
    const request = { undo: options.undo, because: options.because || undefined }
    const chosen = { ...selection, groups }
    const planned = await acknowledge(context, chosen, { ...request, dryRun: true })
    const isNothing = planned.items.length === 0
    // What is named one by one is not asked about: it can be undone.
    const yes = options.yes || isNamed
    const question = `${options.undo ? 'Undo the acknowledgement of' : 'Acknowledge'} ${plural(planned.targets, 'target')} of ${plural(planned.items.length, 'run')}?`
    const alternative = 'add --yes, or --dry-run for a preview'
    const agreed =
      !options.dryRun && (isNothing || (await confirm(output, question, { yes, alternative })))
    const result = agreed
      ? await acknowledge(context, chosen, { ...request, dryRun: false })
      : planned
    return presentAction({ ...actionResultView(result), items: result.items }, result)
  },
})

async function find(store: Store, texts: readonly string[]): Promise<Selection> {
  const [runs, targets] = [new Map<string, Run>(), new Map<string, Target>()]
  for (const text of texts) {
    const found = await findRunOrTarget(store, text, 'acknowledge')
    if ('key' in found) targets.set(found.id, found)
    else runs.set(found.id, found)
  }
  return { runs: [...runs.values()], targets: [...targets.values()] }
}

async function search(
  store: Store,
  { source, undo }: { readonly source: string | undefined; readonly undo: boolean },
): Promise<Selection> {
  const runs = await findAcknowledgeable(store, { source, undo })
  if (source !== undefined && runs.length === 0) {
    const [any] = (await store.runs({ source, limit: 1 })).items
    if (!any) throw await unknownSource(store, source)
  }
  return { runs, targets: [] }
}
