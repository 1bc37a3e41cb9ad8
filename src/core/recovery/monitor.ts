import type { ObserverHealth } from '../decide/liveness.ts'
import type { Emit } from '../model/event.ts'
import { shortId, type WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import type { Verdict } from '../model/verdict.ts'
import { unstuckCommand } from '../model/shell-command.ts'
import { recover, type OperatorContext } from './recover.ts'

const INTERVAL_MS = 60_000
const INTERVAL_MIN_MS = 1_000

/**
 * How often to look: every minute, or twice within the shortest time that a policy allows. `further`: other limits
 * that nobody else looks after.
 */
export function monitorInterval(
  policy: Policy,
  otherLimits: readonly (number | null)[] = [],
): number {
  const groups = Object.values(policy.groups ?? {})
  const limits = [
    policy.maxSilenceMs,
    policy.maxDurationMs,
    ...groups.map((one) => one.maxSilenceMs),
    ...otherLimits,
  ]
  const shortest = Math.min(...limits.filter((ms) => typeof ms === 'number'))
  return Math.max(INTERVAL_MIN_MS, Math.min(INTERVAL_MS, shortest / 2))
}

/** Looks at all runs from time to time: recovers what is dead or overran, and tells people what is theirs to decide. */
export class Monitor {
  readonly #context: OperatorContext
  readonly #emit: Emit
  readonly #filter: ((run: Run) => boolean) | undefined
  /** What people were told and is still so. */
  #reported = new Set<string>()

  /** `of`: of these runs alone. */
  constructor(context: OperatorContext, emit: Emit, filter?: (run: Run) => boolean) {
    this.#context = context
    this.#emit = emit
    this.#filter = filter
  }

  /** One look. Answers what it did or would have a person do. */
  async runOnce(observer: ObserverHealth, self?: WorkerId): Promise<Verdict[]> {
    const { verdicts } = await recover(this.#context, {
      observer,
      ...(self !== undefined && { self }),
      ...(this.#filter && { runFilter: this.#filter }),
    })
    for (const verdict of verdicts.filter(({ applied }) => applied)) {
      this.#emit({ type: 'recovery', verdict })
    }
    const alerts = new Map(needsAttention(verdicts).map((verdict) => [alertKey(verdict), verdict]))
    for (const [key, verdict] of alerts)
      if (!this.#reported.has(key)) this.#emit(alertEvent(verdict))
    this.#reported = new Set(alerts.keys())
    return verdicts
  }
}

/** What only a person can decide. A run that stands still is told of as one, not target by target. */
function needsAttention(verdicts: readonly Verdict[]): Verdict[] {
  const unresolved = verdicts.filter(
    ({ applied, action }) => !applied && (action === 'alert' || action === 'abandon'),
  )
  const wholeRuns = new Set(
    unresolved.filter(({ target }) => target === null).map(({ run }) => run),
  )
  return unresolved.filter(({ target, run }) => target === null || !wholeRuns.has(run))
}

function alertKey({ run, target, action }: Verdict): string {
  return `${run} ${target} ${action}`
}

function alertEvent(verdict: Verdict): Parameters<Emit>[0] {
  const { run, target, source, because, action, cannot } = verdict
  const isCleaned = action === 'abandon' && cannot === undefined
  const command = isCleaned ? 'unstuck clean' : unstuckCommand('explain', [shortId(target ?? run)])
  return { type: 'alert', run, target, source, because, command }
}
