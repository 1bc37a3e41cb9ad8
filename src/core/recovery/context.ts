import type { ObserverHealth } from '../decide/liveness.ts'
import type { Clock } from '../host/clock.ts'
import type { PolicyOf } from '../model/policy-of.ts'
import type { Store } from '../store/store.ts'

/** What an action needs: the store, and the name for the audit trail. */
export type ActionContext = {
  readonly store: Store
  /** The user or process that acts, for the audit trail. */
  readonly actor: string
  /** Where the commands that are shown will be called; not set: unknown, as for a reader of HTTP. */
  readonly folder?: string | undefined
}

declare const complete: unique symbol
/**
 * Everything that an assessment depends on. Only `makeOperatorContext` produces one, so that no interface can assess
 * runs without the policies of the config.
 */
export type OperatorContext = ActionContext & {
  readonly [complete]: true
  readonly policyOf: PolicyOf
  /** How far this process may trust what it sees of others. `recover` watches the workers first unless it is given another. */
  readonly observer: ObserverHealth
  readonly clock: Clock
}

export function makeOperatorContext(
  parts: Omit<OperatorContext, typeof complete>,
): OperatorContext {
  return parts as OperatorContext
}
