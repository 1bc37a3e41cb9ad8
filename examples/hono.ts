// Hono: a line at the start recovers stuck runs beside it, another is the dashboard and its API at /unstuck.
//
//   node examples/hono.ts
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { createHandler, type Access } from '../src/http.ts' // in your project: from 'unstuck/http'
import { recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

void recoverOnStart()

/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
const access: Access = ({ headers }) => {
  const role = headers.get('x-role')
  return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
}

const app = new Hono()
app.mount('/unstuck', createHandler({ basePath: '/unstuck', access }).fetch)
app.get('/', (context) => context.text('hello\n'))

serve(
  { fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) },
  (address) => {
    console.log('listening on', address)
  },
)
