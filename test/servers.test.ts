import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { noChromium } from '../src/testing/chromium.ts'
import { sqliteEngine } from '../src/testing/sqlite-engine.ts'
import { BrowserSession } from './browser/browser.ts'
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

  const browser = noChromium ? null : stages.use(await BrowserSession.start())
  await Promise.all(SERVERS.map((name, n) => assertServer(name, all[n]!, browser)))
})

async function assertServer(
  name: string,
  ctx: ProcessTestContext,
  browser: BrowserSession | null,
): Promise<void> {
  const server = ctx.start([example(name)], { env: { PORT: '0' } })
  await server.waitForOutput(/^Open http/m)
  const login = /^Open (http\S+)/m.exec(server.output)![1]!
  const url = new URL(login).origin
  assert.equal(await (await fetch(url)).text(), 'hello\n')

  await server.waitForOutput(/\[unstuck\] recovery: resume target \w{8} of portal-a .*: process/)
  assert.equal((await ctx.run('portal-a')).status, 'interrupted', name)

  const recovery = `${url}/unstuck/api/recovery`
  const refused = await fetch(recovery)
  assert.equal(refused.status, 401, name)
  assert.match(await refused.text(), /Log in at \/login/)
  assert.equal((await fetch(`${url}/login?key=guess`)).status, 403, name)
  const cookie = await logIn(login)
  const headers = { cookie, 'content-type': 'application/json', origin: url }
  const look = (await (await fetch(recovery, { headers })).json()) as any
  assert.equal(look.planned, 0, name)
  const done = await fetch(recovery, { method: 'POST', headers, body: `{"plan":"${look.plan}"}` })
  assert.equal(done.status, 200, name)

  const page = await fetch(`${url}/unstuck`)
  assert.deepEqual(
    [page.status, page.headers.get('content-type')],
    [200, 'text/html; charset=utf-8'],
  )
  if (browser) await assertOpensInBrowser(browser, login)
}

async function assertOpensInBrowser(browser: BrowserSession, login: string): Promise<void> {
  const { origin } = new URL(login)
  await using stranger = await browser.open(origin)
  await stranger.page.goto('/unstuck')
  await stranger.page.getByRole('link', { name: 'Log in' }).click()
  await stranger.page.getByText('Open the address that was printed').waitFor()

  await using tab = await browser.open(origin)
  await tab.page.goto(login)
  await tab.page.getByRole('link', { name: 'portal-a' }).first().waitFor()
  assert.match(tab.page.url(), /\/unstuck\/?$/)
  assert.deepEqual(tab.errors, [])
}

/** Opens the printed address as a browser does. Returns the cookie. */
async function logIn(address: string): Promise<string> {
  const response = await fetch(address, { redirect: 'manual' })
  assert.deepEqual([response.status, response.headers.get('location')], [302, '/unstuck'])
  return response.headers.get('set-cookie')!.split(';')[0]!
}
