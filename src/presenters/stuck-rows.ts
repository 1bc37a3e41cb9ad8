import { runName } from '../core/model/traits.ts'
import { refuseMove, throwIf } from '../operator/refusals.ts'
import { RefusedError } from '../core/model/errors.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { blockedReason } from '../core/model/verdict.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import { runMoveOf } from '../core/recovery/recover.ts'
import { describeStep, waysOut } from './allowed-actions.ts'

/** Rows of tables of your own that recovery does not move by itself: what an operator can do, and which setting would. */

/** A live run that needs attention and can be moved or acknowledged, also if an operator has acknowledged it. */
export function isStuck({ run, health }: Pick<AssessedRun, 'run' | 'health'>): boolean {
  const { origin } = run.traits
  // No action applies to targets of unknown liveness.
  const isUnknown = health.state === 'unknown' && origin !== null && run.kind === 'crawl'
  const needsAttention = health.severity !== 'ok' && !isUnknown
  return isLive(run.status) && (needsAttention || run.acknowledgedAt !== null)
}

/** Neither recovery nor a clean moves it. */
export function needsOperator(assessed: Pick<AssessedRun, 'run' | 'health'>): boolean {
  const { run, health } = assessed
  const isMoved = /^unstuck (recover|clean)\b/.test(health.command)
  return run.traits.origin !== null && isStuck(assessed) && !isMoved
}

/** The commands for it, each with what it does, and the setting that would do it automatically. */
export function stepsOutOf(assessed: AssessedRun): string[] {
  if (!needsOperator(assessed)) return []
  const { run } = assessed
  const steps = waysOut(run).map(describeStep)
  const { blocked, actions, hasTargets } = run.traits
  const missing = run.status === 'running' && !hasTargets && !actions.includes('resume')
  return [...steps, ...(missing ? [`${blocked.resume}.`] : []), ...settingFor(assessed)]
}

/** The setting that would move it automatically. Of a blocked verdict, the next steps name it. */
function settingFor({ run, decision, health, policy, owner }: AssessedRun): string[] {
  const { table } = run.traits.origin!
  if (blockedReason(run, decision) !== null) return []
  if (run.status === 'interrupted')
    return [
      `It waits for your own program. \`onResume\` of adopted.${table} can start that when recovery puts a row back in the queue.`,
    ]
  if (decision.action === 'abandon')
    return [`With \`autoClean: true\` in the policy of adopted.${table} it is ended automatically.`]
  if (health.state === 'stalled')
    return [
      `With \`onStalled: 'resume'\` or \`'fail'\` in the policy of adopted.${table} (now \`'${policy.onStalled}'\`) it is moved automatically.`,
    ]
  const shown = `\`columns.heartbeatAt\` or \`alive\` of adopted.${table} shows whether a row is alive`
  // Its heartbeat is mapped, and its liveness is known after one lease.
  if (owner !== null && owner.evidence.aliveCheck === undefined) return []
  if (owner !== null)
    return [
      `\`alive\` of adopted.${table} failed or timed out: while it does, the row is left alone.`,
    ]
  if (run.traits.hasTargets) return [`Nothing shows whether it is alive: ${shown}.`]
  return [
    `With \`onStale: 'fail'\` and \`staleAfter\` in the policy of adopted.${table} it is failed automatically; ${shown}.`,
  ]
}

/** Puts a stuck row back in the queue, if it is as it was assessed. */
export async function requeueStuckRow(
  context: ActionContext,
  assessed: AssessedRun,
  {
    dryRun,
    because = `resumed by ${context.actor}`,
  }: { dryRun: boolean; because?: string | undefined },
): Promise<Run> {
  const { run } = assessed
  throwIf(refuseMove(run, 'resume', isStuck(assessed)))
  if (dryRun) return run
  const decision = { action: 'resume', because } as const
  const move = runMoveOf(context, { ...assessed, decision, owner: null })!
  const isMoved = await context.store.moveRun({ ...move, evidence: null })
  if (!isMoved)
    throw new RefusedError(`Run ${runName(run)} keeps changing: look at it and try again.`)
  return (await context.store.run(run.id))!
}
