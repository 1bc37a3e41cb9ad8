// A server that takes care of stuck runs when it starts: one line. It listens at once; recovery runs beside the start,
// says what it sees and does, ends by itself, and never throws, not even when the database is away.
//
//   node examples/server.ts
import { createServer } from 'node:http'
import { open, recoverOnStart } from '../src/index.ts' // in your project: from 'unstuck'

const recovered = recoverOnStart()

const server = createServer((request, response) => {
  if (request.url !== '/stuck') response.end('hello\n')
  else void stuck().then((counts) => response.end(JSON.stringify(counts)))
})
server.listen(Number(process.env['PORT'] ?? 8080), () => {
  const { port } = server.address() as { port: number }
  console.log(`listening on ${port}`)
})

const { verdicts, error } = await recovered
console.log(error ? `not recovered: ${error}` : `recovered: ${verdicts.length} verdicts`)

/** What an operator asks: what is at work, what can go on, what is dead? */
async function stuck(): Promise<Record<string, number>> {
  await using unstuck = await open({ signals: false })
  const { active, resumable, dead } = await unstuck.summary()
  return { active: active.length, resumable: resumable.length, dead: dead.length }
}
