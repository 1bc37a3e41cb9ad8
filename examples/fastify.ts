// Fastify: a line at the start recovers stuck runs beside it, another is the dashboard and its API at /unstuck.
//
//   node examples/fastify.ts
import fastify from 'fastify'
import { createHandler, toFastifyPlugin, type Access } from '../src/http.ts' // in your project: from 'unstuck/http'
import { recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

void recoverOnStart()

/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
const access: Access = ({ headers }) => {
  const role = headers.get('x-role')
  return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
}

const app = fastify()
const handler = createHandler({ basePath: '/unstuck', access })
app.register(toFastifyPlugin(handler), { prefix: '/unstuck' })
app.get('/', () => 'hello\n')

await app.listen({ port: Number(process.env['PORT'] ?? 8080) })
console.log('listening on', app.server.address())
