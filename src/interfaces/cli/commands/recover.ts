import { EXIT } from '../../../core/model/exit-codes.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import type { Verdict } from '../../../core/model/verdict.ts'
import { REAL_CLOCK, type Clock } from '../../../core/host/clock.ts'
import type { Assessment } from '../../../core/recovery/assess.ts'
import { recover as recoverNow } from '../../../core/recovery/recover.ts'
import type { Store } from '../../../core/store/store.ts'
import { recoveryView, classifyVerdicts } from '../../../presenters/recovery.ts'
import { confirm } from '../confirm.ts'
import { openContext } from '../../../app/open-context.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'
import { printApplied, printPlan } from '../recovery-text.ts'
import { defineCommand, type Output } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck recover --dry-run',
    'unstuck recover --yes --timeout 60m  # only those without a sign of life for an hour',
    'unstuck recover --source directory --group CA TX',
  ],
  options: {
    dryRun: option.flag('only say what would be done'),
    timeout: option.duration('AGE', 'only what has shown no sign of life for longer', undefined),
    source: option.texts('SOURCE', 'only runs of these sources'),
    group: option.texts('GROUP', 'only targets of these groups'),
    yes: option.flag('do not ask', '-y'),
  },

  async run({ options, database, settings, output, json }) {
    const { dryRun } = options
    const store = await database.openIfExists()
    if (!store) {
      const data = { severity: 'ok', active: [], verdicts: [], applied: 0, unreadable: [], dryRun }
      return {
        data,
        print: (writer) => writer.paragraph('Nothing has run yet: nothing to recover.'),
      }
    }
    await warnUnknown(store, options, output)
    const context = await openContext(store, settings)
    const which = {
      sources: options.source,
      groups: options.group,
      ...(options.timeout !== undefined && { olderThanMs: options.timeout }),
    }
    const isUnfiltered =
      which.sources.length + which.groups.length === 0 && options.timeout === undefined
    const asks = !dryRun && !options.yes && (output.isTerminal || output.canAsk)
    const clock = output.canAsk ? announcingClock(output) : REAL_CLOCK
    let recovery = await recoverNow({ ...context, clock }, { ...which, dryRun: dryRun || asks })
    const plan = classifyVerdicts(recovery)
    const isPending = asks && plan.planned.length > 0
    let isDone = !dryRun && !asks
    // Where there is nothing to agree to, what the dead have begun is brought to its end all the same.
    if (asks && !isPending) await store.settle()
    if (isPending) {
      const writer = output.makeWriter()
      printPlan(writer, plan)
      if (!json) await output.write(writer.toString())
      const count = plan.planned.length
      const question = count === 1 ? 'Do this?' : `Do these ${count} things?`
      const agreed = { yes: false, alternative: 'add --yes, or --dry-run to only look' }
      if (await confirm(output, question, agreed)) {
        // The answer may have taken a while: what is lost now is watched as before.
        const { verdicts } = await recoverNow({ ...context, clock }, which)
        recovery = { ...recovery, verdicts }
        isDone = true
      }
    }
    const { verdicts, assessment } = recovery
    return {
      data: recoveryView(recovery, dryRun),
      print: (writer) => {
        if (!isPending || json) printPlan(writer, classifyVerdicts(recovery), isDone)
        else if (isDone) printApplied(writer, classifyVerdicts(recovery))
        if (!isDone) {
          writer.blank()
          writer.paragraph('Nothing was changed.')
        }
      },
      exitCode: needsAttention(assessment, verdicts, { dryRun, isUnfiltered })
        ? EXIT.needsAttention
        : EXIT.done,
    }
  },
})

/** Who sits there should know why nothing happens for a while. */
function announcingClock(output: Output): Clock {
  return {
    ...REAL_CLOCK,
    sleep: (ms, signal) => {
      output.note(
        `Somebody has been silent: listening for ${humanizeDuration(ms)} whether they still beat.`,
      )
      return REAL_CLOCK.sleep(ms, signal)
    },
  }
}

/** A dry run reports the state; otherwise only what recovery could not settle counts. */
function needsAttention(
  { severity, unreadable }: Assessment,
  verdicts: readonly Verdict[],
  { dryRun, isUnfiltered }: { dryRun: boolean; isUnfiltered: boolean },
): boolean {
  if (dryRun && (verdicts.length > 0 || (isUnfiltered && severity !== 'ok'))) return true
  return unreadable.length > 0 || verdicts.some(isUnresolved)
}

function isUnresolved({ action, applied, blockedBy }: Verdict): boolean {
  if (blockedBy !== undefined) return true
  return ['alert', 'park', 'hold', 'fail'].includes(action) || (action === 'abandon' && !applied)
}

/** A mistyped name finds nothing, which looks like good news. */
async function warnUnknown(
  store: Store,
  { source, group }: { source: readonly string[]; group: readonly string[] },
  output: Output,
): Promise<void> {
  if (source.length + group.length === 0) return
  const live = (await store.liveRuns()).map(({ run }) => run)
  for (const name of source.filter((name) => !live.some((run) => run.source === name)))
    output.note(`Note: no run of ${name} is live`)
  const remark = await describeUnknownGroups(store, live, group)
  if (remark) output.note(remark)
}
