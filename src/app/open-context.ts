import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { REAL_CLOCK } from '../core/host/clock.ts'
import { currentUser } from '../lib/process/this-process.ts'
import { makeOperatorContext, type OperatorContext } from '../core/recovery/context.ts'
import type { Store } from '../core/store/store.ts'
import type { Settings } from '../contracts/settings.ts'

/** Returns the context of a command: its user is the actor, and the policies are the config's. */
export async function openContext(
  store: Store,
  settings: () => Promise<Pick<Settings, 'policyOf'>>,
): Promise<OperatorContext> {
  return contextFor(store, await settings(), currentUser(), process.cwd())
}

/** Returns the context of any actor. `folder`: where this user calls commands, if that is known. */
export function contextFor(
  store: Store,
  { policyOf }: Pick<Settings, 'policyOf'>,
  actor: string,
  folder?: string,
): OperatorContext {
  return makeOperatorContext({
    store,
    actor,
    folder,
    policyOf,
    observer: TRUSTED_OBSERVER,
    clock: REAL_CLOCK,
  })
}
