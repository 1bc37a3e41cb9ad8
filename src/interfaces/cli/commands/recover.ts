import { closest } from '../../../core/model/closest.ts'
import { defineCommand, reportState, type Output } from '../../../contracts/command.ts'
import { option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { REAL_CLOCK, type Clock } from '../../../core/host/clock.ts'
import { formatDuration, humanizeDuration } from '../../../core/model/time.ts'
import type { Store } from '../../../core/store/store.ts'
import { planRecovery } from '../../../presenters/apply-plan.ts'
import { APPLIED, NO_RECOVERY, presentRecovery } from '../../../presenters/recovery.ts'
import { ENDED } from '../../../presenters/leftover-processes.ts'
import { confirm } from '../confirm.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'

export const command = defineCommand({
  examples: [
    'unstuck recover --dry-run',
    'unstuck recover --yes --timeout 60m  # only workers that have been silent for an hour',
    'unstuck recover --source directory --group CA TX',
  ],
  options: {
    dryRun: SHARED_OPTIONS.dryRun,
    timeout: option.duration('AGE', 'only what has been silent for longer', undefined),
    source: SHARED_OPTIONS.sources,
    group: SHARED_OPTIONS.groups,
    yes: SHARED_OPTIONS.yes,
  },

  async run({ options, openContextIfExists, output, json }) {
    const { dryRun, timeout, source: sources, group: groups } = options
    const request = {
      dryRun,
      timeout: timeout === undefined ? undefined : formatDuration(timeout),
      sources,
      groups,
    }
    const opened = await openContextIfExists()
    if (!opened) return reportState(presentRecovery(NO_RECOVERY, request))
    await warnUnknown(opened.store, options, output)
    const context = output.canAsk ? { ...opened, clock: announcingClock(output) } : opened
    const asks = !options.yes && (output.isTerminal || output.canAsk)
    const keepsProcesses = !options.yes && !asks
    const { preview, apply } = await planRecovery(context, { ...request, keepsProcesses })
    if (dryRun) return reportState(preview)
    const { question } = preview
    if (!asks || !question) return reportState(await apply())

    const writer = output.makeWriter()
    writer.sections(preview.sections.slice(0, -1))
    if (!json) await output.write(writer.toString())
    const alternative = 'add --yes, or --dry-run for a preview'
    const isDone = await confirm(output, question, { yes: false, alternative })
    const result = isDone ? await apply() : preview
    const rest = isDone
      ? result.sections.filter(({ heading }) => AFTERWARDS.includes(heading))
      : result.sections.slice(-1)
    return {
      ...reportState(result),
      print: (writer) => {
        writer.blank()
        writer.sections(rest)
      },
    }
  },
})

/** The sections that the preview does not have. */
const AFTERWARDS: readonly (string | null)[] = [APPLIED, ENDED]

/** Explains the pause while silent workers are observed. */
function announcingClock(output: Output): Clock {
  return {
    ...REAL_CLOCK,
    sleep: (ms, signal) => {
      const pause = humanizeDuration(ms)
      output.note(`A worker missed its heartbeats; waiting ${pause} to confirm.`)
      return REAL_CLOCK.sleep(ms, signal)
    },
  }
}

/** Warns about a mistyped name: it would match nothing, as if nothing were stuck. */
async function warnUnknown(
  store: Store,
  { source, group }: { source: readonly string[]; group: readonly string[] },
  output: Output,
): Promise<void> {
  if (source.length + group.length === 0) return
  const live = (await store.liveRuns()).map(({ run }) => run)
  const sources = live.map((run) => run.source)
  for (const name of source.filter((name) => !sources.includes(name))) {
    const hint = closest(name, sources)
    output.note(`Note: no run of ${name} is live${hint ? `; did you mean ${hint}?` : ''}`)
  }
  const warning = await describeUnknownGroups(store, live, group)
  if (warning) output.note(warning)
}
