import { ApiError, get } from './api.ts'
import { setClock } from './clock.ts'
import { observable, useObserved } from './observable.ts'
import type { Session } from './shapes.ts'

/** The user and the server; null until loaded. */
const session = observable<Session | null>(null)
const failed = observable<ApiError | null>(null)

/** Loads the session: at the start, and again after a login. Returns whether there is one. */
export async function loadSession(): Promise<boolean> {
  try {
    const answer = await get<Session>('/api/session')
    setClock(answer.now)
    session.set(answer)
    failed.set(null)
    return true
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    failed.set(error)
    if (error.status === 401) session.set(null)
    if (error.isTransient) setTimeout(() => void loadSession(), 2_000)
    return false
  }
}

export function useSession(): Session | null {
  return useObserved(session)
}

/** Why it is not known. */
export function useSessionFailure(): ApiError | null {
  return useObserved(failed)
}

/** Whether buttons that act are there at all. `admin`: also those that cannot be reverted. */
export function useHasRole(role: 'operator' | 'admin'): boolean {
  const now = useSession()
  if (!now || now.readOnly) return false
  return now.role === 'admin' || now.role === role
}
