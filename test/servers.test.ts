import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteEngine } from '../src/testing/sqlite-engine.ts'
import { ProcessTestContext } from './processes/harness.ts'

const SERVERS = ['express', 'fastify', 'hono']
const example = (name: string) => fileURLToPath(new URL(`../examples/${name}.ts`, import.meta.url))

/** Begins a run in each database, and is killed in the middle of all. */
const JOB = `
  for (const db of process.env.DATABASES.split(' ')) {
    const run = await (await open({ db })).begin('portal-a')
    await run.checkpoint({ page: 1 })
  }
  mark('begun')
  setInterval(() => {}, 1_000)
`

test('with Express, Fastify and Hono it is one line to recover at the start, and one for the rest', async () => {
  await using stages = new AsyncDisposableStack()
  const all: ProcessTestContext[] = []
  for (const _ of SERVERS) all.push(stages.use(await ProcessTestContext.create(sqliteEngine)))
  const [first] = all as [ProcessTestContext]
  const job = first.start([first.module('job.ts', JOB)], {
    env: { DATABASES: all.map(({ database }) => database.url).join(' ') },
  })
  await first.waitForMarks('begun')
  job.signal('SIGKILL')
  await job.waitForExit()

  await Promise.all(SERVERS.map((name, n) => assertServer(name, all[n]!)))
})

async function assertServer(name: string, ctx: ProcessTestContext): Promise<void> {
  const server = ctx.start([example(name)], { env: { PORT: '0' } })
  await server.waitForOutput(/listening on [^]*port: \d+/)
  const url = `http://127.0.0.1:${/port: (\d+)/.exec(server.output)![1]}`
  assert.equal(await (await fetch(url)).text(), 'hello\n')

  await server.waitForOutput(/\[unstuck\] recovery: resume target \w{8} of portal-a .*: process/)
  assert.equal((await ctx.run('portal-a')).status, 'interrupted', name)

  const recovery = `${url}/unstuck/api/recovery`
  const headers = { 'x-role': 'operator', 'content-type': 'application/json', origin: url }
  assert.equal((await fetch(recovery)).status, 401, name)
  const look = (await (await fetch(recovery, { headers })).json()) as any
  assert.equal(look.planned, 0, name)
  const done = await fetch(recovery, { method: 'POST', headers, body: `{"plan":"${look.plan}"}` })
  assert.equal(done.status, 200, name)

  const page = await fetch(`${url}/unstuck`)
  assert.deepEqual(
    [page.status, page.headers.get('content-type')],
    [200, 'text/html; charset=utf-8'],
  )
}
