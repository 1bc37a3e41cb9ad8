import { loadRoutes } from '../interfaces/http/app.ts'

/** Every call of the HTTP API that needs a role. */
export const ALL_ROUTES = await loadRoutes()
