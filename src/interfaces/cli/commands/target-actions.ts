import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'
import { isParkedOrStuck } from '../../../core/decide/allowed-actions.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import { unpark as unparkTargets } from '../../../core/recovery/operator-actions.ts'
import { commandOnTargets } from '../../../presenters/action-result.ts'
import { findRun, findTarget, findTargets } from '../../../presenters/find.ts'
import { formatTargetStatus } from '../../../presenters/format.ts'
import * as actions from '../../../presenters/target-actions.ts'
import { targetView } from '../../../presenters/view.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'
import type { Run } from '../../../core/model/run.ts'

const targets = argument.rest('targets: their last 8 digits, or full ids')
const dryRun = option.flag('print what would be done, and change nothing')

export const park = defineCommand({
  examples: [
    'unstuck park 91bc4f2a',
    'unstuck park 91bc4f2a 7701aa3e --because "the city has moved"',
  ],
  args: { targets },
  options: { because: option.text('TEXT', 'why, for the audit trail'), dryRun },

  async run({ args, options: { dryRun, because }, openContext }) {
    if (args.targets.length === 0)
      throw new UsageError('Which targets? `unstuck show RUN` lists those that need attention.')
    const context = await openContext()
    const { store } = context
    const found = await findTargets(store, args.targets)
    const request = { dryRun, because: because || undefined }
    const { parked, ended } = await actions.park(context, found, request)
    const now = await Promise.all(found.map(async ({ id }) => (await store.target(id))!))
    return {
      data: { items: now.map(targetView), parked: dryRun ? 0 : parked.length, dryRun },
      print: (writer) => {
        for (const target of found) {
          const isParked = parked.some(({ id }) => id === target.id)
          const becomes = dryRun ? 'would be parked' : 'is parked'
          writer.paragraph(describeTarget(target, isParked ? becomes : unchanged(target)))
        }
        for (const run of ended) writer.paragraph(actions.describeEnded(run))
        if (dryRun || parked.length === 0) return writer.paragraph('Nothing was changed.')
        const label = actions.allWereOpen(parked) ? 'Undo' : 'To put them back in line'
        writer.paragraph(`${label}: \`${commandOnTargets('unpark', parked)}\``)
      },
    }
  },
})

export const unpark = defineCommand({
  examples: ['unstuck unpark 91bc4f2a', 'unstuck unpark --run 4f2a91bc  # all of the run'],
  args: { targets },
  options: {
    run: option.text('RUN', 'all parked and held targets of this run'),
    group: option.texts('GROUP', 'with --run: only those of these groups'),
    dryRun,
  },

  async run({ args, options, openContext, output }) {
    if ((args.targets.length === 0) === (options.run === undefined)) {
      throw new UsageError('Give either targets, or --run RUN for all of a run.')
    }
    if (options.group.length > 0 && options.run === undefined)
      throw new UsageError('--group goes with --run.')
    const { dryRun } = options
    const context = await openContext()
    const named = await findTargets(context.store, args.targets)
    const whole = options.run === undefined ? null : await findRun(context.store, options.run)
    const warning = whole && (await describeUnknownGroups(context.store, [whole], options.group))
    if (warning) output.note(warning)
    const groups = options.group.length > 0 ? options.group : undefined
    const chosen = whole ? new Map([[whole.id, undefined]]) : idsByRun(named)
    const items: { run: string; targets: number; reopened: boolean }[] = []
    const changed: Run[] = []
    for (const [run, targets] of chosen) {
      const unparked = await unparkTargets(context, run, { targets, groups, dryRun })
      items.push({ run, ...unparked })
      if (unparked.targets > 0) changed.push((await context.store.run(run))!)
    }
    const total = items.reduce((sum, { targets }) => sum + targets, 0)
    const replanned = items.filter((one) => one.targets > 0)
    return {
      data: { items, targets: total, dryRun },
      print: (writer) => {
        for (const target of named.filter((one) => !isParkedOrStuck(one)))
          writer.paragraph(describeTarget(target, unchanged(target)))
        if (total === 0) return writer.paragraph('Nothing is parked or held. Nothing was changed.')
        for (const { run, ...result } of replanned)
          writer.paragraph(actions.describeReplanned(run, result, dryRun))
        if (dryRun) return writer.paragraph('Nothing was changed.')
        writer.paragraph(actions.describeNextStart(changed))
        const undo = named.filter(isParkedOrStuck)
        if (undo.length > 0) writer.paragraph(`Undo: \`${commandOnTargets('park', undo)}\``)
        else for (const hint of actions.parkHint(changed)) writer.paragraph(hint)
      },
    }
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
  },

  async run({ args, options: { to, next, dryRun, cursor: text }, openContext }) {
    if (to === undefined) throw new UsageError('To which page? Add --to PAGE; --to 0 is the start.')
    if (next === '') throw new UsageError('--next must be an address.')
    const cursor = readCursor(text)
    const context = await openContext()
    const before = await findTarget(context.store, args.target)
    const request = { to, next, cursor, dryRun }
    const { target, reopened, sentences } = await actions.rewind(context, before, request)
    return {
      data: { target: targetView(target), from: before.page, to, reopened, dryRun },
      print: (writer) => sentences.forEach((sentence) => writer.paragraph(sentence)),
    }
  },
})

function describeTarget({ id, key }: Target, becomes: string): string {
  return `- ${shortId(id)} ${key}: ${becomes}.`
}

function unchanged({ status }: Target): string {
  return `stays as it is, ${formatTargetStatus(status).text}`
}

function idsByRun(targets: readonly Target[]): Map<string, string[]> {
  const grouped = Map.groupBy(targets, ({ run }) => run)
  return new Map([...grouped].map(([run, all]) => [run, all.map(({ id }) => id)]))
}

function readCursor(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--cursor must be JSON, not ${JSON.stringify(text)}.`)
  }
}
