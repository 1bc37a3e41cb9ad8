import type { Route } from '../../contracts/route.ts'
import { FEATURES } from '../../features/index.ts'
import { LIVE_ROUTES } from './live/routes.ts'
import { DEAD_LETTER_ROUTES } from './routes/dead-letters.ts'
import { HISTORY_ROUTES } from './routes/history.ts'
import { ITEM_ROUTES } from './routes/items.ts'
import { OVERVIEW_ROUTES } from './routes/overview.ts'
import { RECOVERY_ROUTES } from './routes/recovery.ts'
import { RUN_ACTION_ROUTES } from './routes/run-actions.ts'
import { RUN_ROUTES } from './routes/runs.ts'
import { TARGET_ROUTES } from './routes/targets.ts'
import { SESSION_ROUTES } from './session-routes.ts'

/** Returns every call that needs a role, with those of features. */
export async function loadRoutes(): Promise<readonly Route<any, any, any, any>[]> {
  const added = await Promise.all(FEATURES.flatMap(({ routes }) => (routes ? [routes()] : [])))
  return [
    ...SESSION_ROUTES,
    ...OVERVIEW_ROUTES,
    ...RUN_ROUTES,
    ...RUN_ACTION_ROUTES,
    ...TARGET_ROUTES,
    ...RECOVERY_ROUTES,
    ...DEAD_LETTER_ROUTES,
    ...HISTORY_ROUTES,
    ...ITEM_ROUTES,
    ...LIVE_ROUTES,
    ...added.flat(),
  ]
}
