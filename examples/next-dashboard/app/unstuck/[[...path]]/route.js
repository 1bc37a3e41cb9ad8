import { createHandler } from 'unstuck/http'

/** The dashboard and the API of Unstuck, at /unstuck of this app. */
const handler = createHandler({
  basePath: '/unstuck',
  // Who may look and act: ask your own sessions here. Nobody is let in unless this says so.
  access: (request) => {
    const role = request.headers.get('x-role')
    return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
  },
})

export const { GET, HEAD, POST, DELETE } = handler.routes

/** What it shows is never what was there when the app was built. */
export const dynamic = 'force-dynamic'
