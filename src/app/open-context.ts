import { hostname, userInfo } from 'node:os'
import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { REAL_CLOCK } from '../core/host/clock.ts'
import { makeOperatorContext, type OperatorContext } from '../core/recovery/context.ts'
import type { Store } from '../core/store/store.ts'
import type { Settings } from './config.ts'

/** The context of a command: in the name of its user, with the policies of the config. */
export async function openContext(
  store: Store,
  settings: () => Promise<Pick<Settings, 'policyOf'>>,
): Promise<OperatorContext> {
  return contextFor(store, await settings(), currentUser())
}

/** The same for any actor. */
export function contextFor(
  store: Store,
  { policyOf }: Pick<Settings, 'policyOf'>,
  actor: string,
): OperatorContext {
  return makeOperatorContext({
    store,
    actor,
    policyOf,
    observer: TRUSTED_OBSERVER,
    clock: REAL_CLOCK,
  })
}

export function currentUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // A user without a name, as in some containers.
    return `${process.getuid?.() ?? 'somebody'}@${hostname()}`
  }
}
