import { LIVE_ROUTES } from './live/routes.ts'
import { SESSION_ROUTES } from './session-routes.ts'
import type { Route } from './route.ts'
import { ROUTES } from './routes/routes.ts'

/** Every call that needs a role. */
export const ALL_ROUTES: readonly Route<any, any, any, any>[] = [
  ...SESSION_ROUTES,
  ...ROUTES,
  ...LIVE_ROUTES,
]
