import { unstuckRoutes } from 'unstuck/next'
import { access } from '../../../access.js'

/** The dashboard and the API of Unstuck, at /unstuck of this app. */
export const { GET, HEAD, POST, DELETE } = unstuckRoutes({ basePath: '/unstuck', access })
