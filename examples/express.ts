// Express: a line at the start recovers stuck runs beside it, another is the dashboard and its API at /unstuck.
//
//   node examples/express.ts
import express from 'express'
import { createHandler, toNodeHandler, type Access } from '../src/http.ts' // in your project: from 'unstuck/http'
import { recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

void recoverOnStart()

/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
const access: Access = ({ headers }) => {
  const role = headers.get('x-role')
  return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
}

const app = express()
app.use('/unstuck', toNodeHandler(createHandler({ basePath: '/unstuck', access })))
app.get('/', (_request, response) => void response.send('hello\n'))

const server = app.listen(Number(process.env['PORT'] ?? 8080), '127.0.0.1', () => {
  console.log('listening on', server.address())
})
