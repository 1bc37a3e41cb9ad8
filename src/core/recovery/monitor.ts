import type { Judge } from '../decide/liveness.ts'
import type { Emit } from '../model/event.ts'
import { shortId, type WorkerId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import type { Verdict } from '../model/verdict.ts'
import { unstuckCommand } from '../model/shell-command.ts'
import { recover, type Door } from './recover.ts'

const EVERY_MS = 60_000
const EVERY_MIN_MS = 1_000

/**
 * How often to look: every minute, or twice within the shortest time that a policy allows. `further`: other limits
 * that nobody else looks after.
 */
export function monitorEvery(policy: Policy, further: readonly (number | null)[] = []): number {
  const groups = Object.values(policy.groups ?? {})
  const limits = [
    policy.maxSilenceMs,
    policy.maxDurationMs,
    ...groups.map((one) => one.maxSilenceMs),
    ...further,
  ]
  const shortest = Math.min(...limits.filter((ms) => typeof ms === 'number'))
  return Math.max(EVERY_MIN_MS, Math.min(EVERY_MS, shortest / 2))
}

/** A worker's own part of a policy: how it beats, and how it looks after others. */
export function caretaking(policy: Policy) {
  const { heartbeatMs, leaseMs, graceMs } = policy
  return { heartbeatMs, leaseMs, graceMs, monitorEveryMs: monitorEvery(policy) }
}

/** Looks at all runs from time to time: recovers what is dead or overran, and tells people what is theirs to decide. */
export class Monitor {
  readonly #door: Door
  readonly #emit: Emit
  readonly #of: ((run: Run) => boolean) | undefined
  /** What people were told and is still so. */
  #told = new Set<string>()

  /** `of`: of these runs alone. */
  constructor(door: Door, emit: Emit, of?: (run: Run) => boolean) {
    this.#door = door
    this.#emit = emit
    this.#of = of
  }

  /** One look. Answers what it did or would have a person do. */
  async look(judge: Judge, self?: WorkerId): Promise<Verdict[]> {
    const { verdicts } = await recover(this.#door, {
      judge,
      ...(self !== undefined && { self }),
      ...(this.#of && { of: this.#of }),
    })
    for (const verdict of verdicts.filter(({ applied }) => applied)) {
      this.#emit({ type: 'recovery', verdict })
    }
    const causes = new Map(forPeople(verdicts).map((verdict) => [causeOf(verdict), verdict]))
    for (const [cause, verdict] of causes) if (!this.#told.has(cause)) this.#emit(alert(verdict))
    this.#told = new Set(causes.keys())
    return verdicts
  }
}

/** What only a person can decide. A run that stands still is told of as one, not target by target. */
function forPeople(verdicts: readonly Verdict[]): Verdict[] {
  const theirs = verdicts.filter(
    ({ applied, action }) => !applied && (action === 'alert' || action === 'abandon'),
  )
  const whole = new Set(theirs.filter(({ target }) => target === null).map(({ run }) => run))
  return theirs.filter(({ target, run }) => target === null || !whole.has(run))
}

function causeOf({ run, target, action }: Verdict): string {
  return `${run} ${target} ${action}`
}

function alert(verdict: Verdict): Parameters<Emit>[0] {
  const { run, target, source, because, action, cannot } = verdict
  const isCleaned = action === 'abandon' && cannot === undefined
  const command = isCleaned ? 'unstuck clean' : unstuckCommand('explain', [shortId(target ?? run)])
  return { type: 'alert', run, target, source, because, command }
}
