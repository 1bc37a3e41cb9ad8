import { recoveryRoutes } from 'unstuck/next'
import { access } from '../../../access.js'

/** What recovery would do now (GET), and doing it (POST): for a button, or a job that calls it. */
export const { GET, POST } = recoveryRoutes({ access })
