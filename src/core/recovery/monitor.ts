import type { ObserverHealth } from '../decide/liveness.ts'
import type { Emit } from '../model/event.ts'
import { shortId, type WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { commandOn, rowName } from '../model/traits.ts'
import type { Verdict } from '../model/verdict.ts'
import type { OperatorContext } from './context.ts'
import { recover } from './recover.ts'

const INTERVAL_MS = 60_000
const INTERVAL_MIN_MS = 1_000

/**
 * Returns how often to check all runs: every minute, or twice within the shortest limit of the policy. `otherLimits`: limits
 * that no sweep checks.
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

/** Checks all runs: recovers dead and overdue ones, and emits an alert for each that needs attention. */
export class Monitor {
  readonly #context: OperatorContext
  readonly #emit: Emit
  readonly #filter: ((run: Run) => boolean) | undefined
  /** Alerts that were emitted and still hold. */
  #reported = new Set<string>()

  /** `filter`: checks only these runs. */
  constructor(context: OperatorContext, emit: Emit, filter?: (run: Run) => boolean) {
    this.#context = context
    this.#emit = emit
    this.#filter = filter
  }

  /** Checks once. Returns what it applied and what needs attention. */
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

/** Selects what needs attention. A stalled run is one alert, not one per target. */
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
  const { run, target, source, because, action, blockedBy } = verdict
  const isCleaned = action === 'abandon' && blockedBy === undefined
  const id = rowName(verdict.row ?? verdict.targetRow ?? null) ?? shortId(target ?? run)
  const command = isCleaned ? 'unstuck clean' : commandOn('explain', id)
  return { type: 'alert', run, name: id, target, source, because, command }
}
