import { defineCommand, presentAction } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Store } from '../../../core/store/store.ts'
import { findRunToChange, findTarget, findTargets } from '../../../presenters/find.ts'
import * as actions from '../../../presenters/target-actions.ts'
import { targetView } from '../../../presenters/view.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'

const targets = argument.rest('targets: their last 8 digits, or full ids')
const { because, dryRun, yes } = SHARED_OPTIONS

export const park = defineCommand({
  examples: [
    'unstuck park 91bc4f2a',
    'unstuck park 91bc4f2a 7701aa3e --because "the city has moved"',
  ],
  args: { targets },
  options: { because, dryRun, yes },

  async run({ args, options: { dryRun, because }, openContext }) {
    if (args.targets.length === 0)
      throw new UsageError('Which targets? `unstuck targets RUN` lists those of a run.')
    const context = await openContext()
    const { store } = context
    const found = await findTargets(store, args.targets)
    const result = await actions.park(context, found, { dryRun, because: because || undefined })
    const now = await Promise.all(found.map(async ({ id }) => (await store.target(id))!))
    const parked = dryRun ? 0 : result.parked.length
    return presentAction({ items: now.map(targetView), parked, dryRun }, result)
  },
})

export const unpark = defineCommand({
  examples: ['unstuck unpark 91bc4f2a', 'unstuck unpark --run 4f2a91bc  # all of the run'],
  args: { targets },
  options: {
    run: SHARED_OPTIONS.run,
    group: SHARED_OPTIONS.groups,
    dryRun,
    yes,
  },

  async run({ args, options, openContext, output }) {
    if ((args.targets.length === 0) === (options.run === undefined)) {
      throw new UsageError('Give either targets, or --run RUN for all of a run.')
    }
    if (options.group.length > 0 && options.run === undefined)
      throw new UsageError('--group goes with --run.')
    const context = await openContext()
    const { store } = context
    const named = await findTargets(store, args.targets)
    const runs =
      options.run === undefined
        ? await runsOf(store, named)
        : [await findRunToChange(store, options.run, 'unpark --run')]
    const warning = await describeUnknownGroups(store, runs, options.group)
    if (warning) output.note(warning)
    const result = await actions.unpark(context, runs, {
      targets: options.run === undefined ? named : undefined,
      groups: options.group.length > 0 ? options.group : undefined,
      dryRun: options.dryRun,
    })
    const { items, targets } = result
    return presentAction({ items, targets, dryRun: options.dryRun }, result)
  },
})

export const rewind = defineCommand({
  examples: [
    'unstuck rewind 91bc4f2a --to 0  # from the start',
    'unstuck rewind 91bc4f2a --to 4 --next "https://directory.example/plumbers?page=5"',
  ],
  args: { target: argument.required('the target: its last 8 digits, or its full id') },
  options: {
    to: option.count('PAGE', 'the last page to keep', undefined, { min: 0 }),
    next: option.text('URL', "the next page's address, for crawls that follow addresses"),
    cursor: option.text('JSON', "the crawl's own cursor at that page"),
    dryRun,
    yes,
  },

  async run({ args, options: { to, next, dryRun, cursor: text }, openContext }) {
    if (to === undefined) throw new UsageError('To which page? Add --to PAGE; --to 0 is the start.')
    if (next === '') throw new UsageError('--next must be an address.')
    const cursor = readCursor(text)
    const context = await openContext()
    const before = await findTarget(context.store, args.target)
    const request = { to, next, cursor, dryRun }
    const result = await actions.rewind(context, before, request)
    const { target, reopened } = result
    return presentAction(
      { target: targetView(target), from: before.page, to, reopened, dryRun },
      result,
    )
  },
})

function runsOf(store: Store, targets: readonly Target[]): Promise<Run[]> {
  const ids = new Set(targets.map(({ run }) => run))
  return Promise.all([...ids].map(async (id) => (await store.run(id))!))
}

function readCursor(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--cursor must be JSON, not ${JSON.stringify(text)}.`)
  }
}
