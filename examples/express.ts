// Express: a line at the start recovers stuck runs beside it, another is the dashboard and its API at /unstuck.
//
//   node examples/express.ts      # prints the address to open
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createHandler, toNodeHandler, type Access } from '../src/http.ts' // in your project: from 'unstuck/http'
import { recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

void recoverOnStart()

// In place of your own login: a browser that opens the printed address gets this cookie.
const secret = randomUUID()
const cookie = `session=${secret}`

/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
const access: Access = ({ headers }) =>
  headers.get('cookie')?.includes(cookie) ? { name: 'demo', role: 'operator' } : null

const app = express()
const handler = createHandler({ basePath: '/unstuck', access, loginUrl: '/login' })
app.use('/unstuck', toNodeHandler(handler))
app.get('/', (_request, response) => void response.send('hello\n'))
app.get('/login', ({ query }, response) => {
  if (query['key'] !== secret)
    return void response.status(403).send('Open the address that was printed at the start.\n')
  response.setHeader('set-cookie', `${cookie}; HttpOnly; SameSite=Strict; Path=/`)
  response.redirect('/unstuck')
})

const server = app.listen(Number(process.env['PORT'] ?? 8080), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(`Open http://127.0.0.1:${port}/login?key=${secret}`)
})
