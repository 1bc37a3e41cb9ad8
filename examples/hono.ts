// Hono: a line at the start recovers stuck runs beside it, another is the dashboard and its API at /unstuck.
//
//   node examples/hono.ts         # prints the address to open
import { randomUUID } from 'node:crypto'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { createHandler, type Access } from '../src/http.ts' // in your project: from 'unstuck/http'
import { recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

void recoverOnStart()

// In place of your own login: a browser that opens the printed address gets this cookie.
const secret = randomUUID()
const cookie = `session=${secret}`

/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
const access: Access = ({ headers }) =>
  headers.get('cookie')?.includes(cookie) ? { name: 'demo', role: 'operator' } : null

const app = new Hono()
const handler = createHandler({ basePath: '/unstuck', access, loginUrl: '/login' })
app.mount('/unstuck', handler.fetch)
app.get('/', (context) => context.text('hello\n'))
app.get('/login', (context) => {
  if (context.req.query('key') !== secret)
    return context.text('Open the address that was printed at the start.\n', 403)
  context.header('set-cookie', `${cookie}; HttpOnly; SameSite=Strict; Path=/`)
  return context.redirect('/unstuck')
})

const port = Number(process.env['PORT'] ?? 8080)
serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, (address) => {
  console.log(`Open http://127.0.0.1:${address.port}/login?key=${secret}`)
})
