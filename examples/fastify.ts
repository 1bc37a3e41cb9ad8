// Fastify: a line at the start recovers stuck runs beside it, another is the dashboard and its API at /unstuck.
//
//   node examples/fastify.ts      # prints the address to open
import { randomUUID } from 'node:crypto'
import fastify from 'fastify'
import { createHandler, toFastifyPlugin, type Access } from '../src/http.ts' // in your project: from 'unstuck/http'
import { recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

void recoverOnStart()

// In place of your own login: a browser that opens the printed address gets this cookie.
const secret = randomUUID()
const cookie = `session=${secret}`

/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
const access: Access = ({ headers }) =>
  headers.get('cookie')?.includes(cookie) ? { name: 'demo', role: 'operator' } : null

const app = fastify()
const handler = createHandler({ basePath: '/unstuck', access, loginUrl: '/login' })
app.register(toFastifyPlugin(handler), { prefix: '/unstuck' })
app.get('/', () => 'hello\n')
app.get<{ Querystring: { key?: string } }>('/login', ({ query }, reply) => {
  if (query.key !== secret)
    return reply.code(403).send('Open the address that was printed at the start.\n')
  reply.header('set-cookie', `${cookie}; HttpOnly; SameSite=Strict; Path=/`)
  return reply.redirect('/unstuck')
})

const address = await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT'] ?? 8080) })
console.log(`Open ${address}/login?key=${secret}`)
