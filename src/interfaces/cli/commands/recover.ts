import { EXIT } from '../../../core/model/errors.ts'
import { inWords } from '../../../core/model/time.ts'
import type { Verdict } from '../../../core/model/verdict.ts'
import { REAL_CLOCK, type Clock } from '../../../core/host/clock.ts'
import { recover as recoverNow } from '../../../core/recovery/recover.ts'
import type { Store } from '../../../core/store/store.ts'
import { recoveryView, sortOut } from '../../../presenters/recovery.ts'
import { defineCommand } from '../command.ts'
import { isAgreed } from '../confirm.ts'
import { doorOf } from '../../../app/open-context.ts'
import { unknownGroups } from '../known-groups.ts'
import { option } from '../option.ts'
import type { Output } from '../output.ts'
import { printDone, printPlan } from '../recovery-text.ts'

export const recover = defineCommand({
  name: 'recover',
  summary: 'Recover orphans now: what the dead and the silent held. Never touches the living.',
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
    const store = await database.openIfAny()
    if (!store) {
      const data = { active: [], verdicts: [], applied: 0, away: [], dryRun }
      return { data, text: (paper) => paper.say('Nothing has run yet: nothing to recover.') }
    }
    await remarkOnUnknown(store, options, output)
    const door = await doorOf(store, settings)
    const which = {
      sources: options.source,
      groups: options.group,
      ...(options.timeout !== undefined && { olderThanMs: options.timeout }),
    }
    const now = await store.now()
    const asks = !dryRun && !options.yes && (output.isTerminal || output.canAsk)
    const clock = output.canAsk ? heard(output) : REAL_CLOCK
    let recovery = await recoverNow(door, { ...which, clock, dryRun: dryRun || asks })
    const plan = sortOut(recovery)
    const isPending = asks && plan.deeds.length > 0
    let isDone = !dryRun && !asks
    // Where there is nothing to agree to, what the dead have begun is brought to its end all the same.
    if (asks && !isPending) await store.settle()
    if (isPending) {
      const paper = output.paper()
      printPlan(paper, plan, now)
      if (!json) await output.write(paper.toString())
      const count = plan.deeds.length
      const question = count === 1 ? 'Do this?' : `Do these ${count} things?`
      const agreed = { yes: false, elsewise: 'add --yes, or --dry-run to only look' }
      if (await isAgreed(output, question, agreed)) {
        // The answer may have taken a while: what is lost now is watched as before.
        const { verdicts } = await recoverNow(door, { ...which, clock })
        recovery = { ...recovery, verdicts }
        isDone = true
      }
    }
    const { verdicts, away } = recovery
    return {
      data: recoveryView(recovery, dryRun),
      text: (paper) => {
        if (!isPending || json) printPlan(paper, sortOut(recovery), now, isDone)
        else if (isDone) printDone(paper, sortOut(recovery))
        if (!isDone) {
          paper.blank()
          paper.say('Nothing was changed.')
        }
      },
      exitCode: away.length > 0 || verdicts.some(isLeft) ? EXIT.leftForAPerson : EXIT.done,
    }
  },
})

/** Who sits there should know why nothing happens for a while. */
function heard(output: Output): Clock {
  return {
    ...REAL_CLOCK,
    sleep: (ms, signal) => {
      output.note(`Somebody has been silent: listening for ${inWords(ms)} whether they still beat.`)
      return REAL_CLOCK.sleep(ms, signal)
    },
  }
}

/** A person has to look at it. */
function isLeft({ action, applied, cannot }: Verdict): boolean {
  if (cannot !== undefined) return true
  return ['alert', 'park', 'hold', 'fail'].includes(action) || (action === 'abandon' && !applied)
}

/** A mistyped name finds nothing, which looks like good news. */
async function remarkOnUnknown(
  store: Store,
  { source, group }: { source: readonly string[]; group: readonly string[] },
  output: Output,
): Promise<void> {
  if (source.length + group.length === 0) return
  const live = (await store.liveRuns()).map(({ run }) => run)
  for (const name of source.filter((name) => !live.some((run) => run.source === name)))
    output.note(`Note: no run of ${name} is live`)
  const remark = await unknownGroups(store, live, group)
  if (remark) output.note(remark)
}
