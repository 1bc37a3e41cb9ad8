import { hostname, userInfo } from 'node:os'
import type { OperatorContext } from '../core/recovery/recover.ts'
import type { Store } from '../core/store/store.ts'
import type { Settings } from './config.ts'

/** How a command looks at runs and acts on them: in the name of the person at the keyboard, by the config's policies. */
export async function openContext(
  store: Store,
  settings: () => Promise<Settings>,
): Promise<OperatorContext> {
  const { policyOf } = await settings()
  return { store, actor: currentUser(), policyOf }
}

export function currentUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // A user without a name, as in some containers.
    return `${process.getuid?.() ?? 'somebody'}@${hostname()}`
  }
}
