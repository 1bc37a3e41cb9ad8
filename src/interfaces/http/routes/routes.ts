import type { Route } from '../route.ts'
import { DEAD_LETTER_ROUTES } from './dead-letters.ts'
import { HISTORY_ROUTES } from './history.ts'
import { ITEM_ROUTES } from './items.ts'
import { OVERVIEW_ROUTES } from './overview.ts'
import { RECOVERY_ROUTES } from './recovery.ts'
import { RUN_ACTION_ROUTES } from './run-actions.ts'
import { RUN_ROUTES } from './runs.ts'
import { TARGET_ROUTES } from './targets.ts'

/** All that the command line can look at and do, over HTTP. */
export const ROUTES: readonly Route<any, any, any, any>[] = [
  ...OVERVIEW_ROUTES,
  ...RUN_ROUTES,
  ...RUN_ACTION_ROUTES,
  ...TARGET_ROUTES,
  ...RECOVERY_ROUTES,
  ...DEAD_LETTER_ROUTES,
  ...HISTORY_ROUTES,
  ...ITEM_ROUTES,
]
