import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { TcpProxy } from '../../src/testing/tcp-proxy.ts'
import type { Evidence } from '../../src/core/model/worker.ts'
import { CLI, ENGINES, kill, ProcessTestContext, waitFor, type Program } from './harness.ts'

/** Two pages quickly, and a third that is in hand until the test opens the gate. */
const CRAWL = `
  *targets() { for (const key of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) yield { key } },
  async page({ target, page }) {
    mark('page ' + page, target.key, page)
    if (page === 3) await opened('last page')
    return { next: page < 3 ? 'next' : null, inTransaction: ledger(target.key, page) }
  },
  concurrency: 2,
`
const PAGES = 'abcdefgh'.split('').flatMap((key) => [1, 2, 3].map((page) => `${key}/${page}`))

const POST = `curl -sf -H "Authorization: Bearer $UNSTUCK_TOKEN" -H 'content-type: application/json'`
/** Saves a page when the test opens the gate, then ends its run. */
const COMMAND =
  `echo up; until [ -e "last page.gate" ]; do sleep 0.05; done; ` +
  `${POST} "$UNSTUCK_URL/checkpoint" -d '{"page":1,"items":[{"key":"a","data":1}]}' && ${POST} "$UNSTUCK_URL/finish" -d '{}'`

/** Counts how often a program has found its way back to the database. */
function reconnects({ output }: Program): number {
  return output.split('database reachable again after').length - 1
}

/** What recovery did, and by which evidence. */
async function recoveries(
  ctx: ProcessTestContext,
): Promise<{ action: string; evidence: Evidence }[]> {
  return (await ctx.verdicts())
    .map(({ action, evidence }) => ({ action, evidence: evidence as Evidence }))
    .reverse()
}

describe(
  'P9 connections of a living worker are cut while another stays connected',
  { skip: !ENGINES.includes(postgresEngine) },
  () => {
    test('P9 for 2, 4 and 10 s on the same host: nothing is taken and each page is done once', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const proxy = await TcpProxy.start(ctx.database.url)
      const env = { UNSTUCK_DB: proxy.address }
      try {
        const crawl = ctx.crawl(CRAWL)
        const cut = ctx.start([CLI, 'work', crawl, '--drain'], { env })
        const command = ctx.start([CLI, 'run', 'portal', '--', 'bash', '-c', COMMAND], { env })
        await command.waitForOutput('] up')
        await ctx.waitForMarks('page 3', 2)
        const connected = ctx.unstuck('work', crawl, '--drain')
        await ctx.waitForMarks('page 3', 4)

        for (const [n, gapMs] of [2_000, 4_000, 10_000].entries()) {
          proxy.close()
          const by = ctx.unstuck('recover', '--yes', '--json')
          await sleep(gapMs)
          await proxy.open()
          await waitFor('both are back', () => reconnects(cut) > n && reconnects(command) > n)
          assert.equal(await by.waitForExit(), 0, by.output)
          assert.deepEqual(
            (JSON.parse(by.output) as { verdicts: unknown[] }).verdicts,
            [],
            `a person’s recover takes nothing in a gap of ${gapMs} ms`,
          )
        }
        ctx.openGate('last page')

        for (const program of [cut, connected, command])
          assert.equal(await program.waitForExit(), 0, program.output)
        assert.deepEqual(await recoveries(ctx), [])
        assert.deepEqual(await ctx.ledger(), PAGES)
        for (const { status, attempts, crashes } of (await ctx.targets()).values())
          assert.deepEqual([status, attempts, crashes], ['done', 1, 0])
        const run = await ctx.run('portal')
        assert.deepEqual([run.status, run.resumes, run.counts.pages], ['succeeded', 0, 1])
      } finally {
        proxy.close()
      }
    })

    test('P9 its sessions are ended and no connection slot is left for it: nothing is taken', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const role = `cut_${process.pid}_${Date.now()}`
      await ctx.database.raw(`CREATE ROLE ${role} LOGIN PASSWORD 'cut' IN ROLE postgres`)
      const address = new URL(ctx.database.url)
      address.username = role
      address.password = 'cut'
      try {
        const crawl = ctx.crawl(CRAWL)
        const env = { UNSTUCK_DB: address.href }
        const cut = ctx.start([CLI, 'work', crawl, '--drain'], { env })
        await ctx.waitForMarks('page 3', 2)
        const connected = ctx.unstuck('work', crawl, '--drain')
        await ctx.waitForMarks('page 3', 4)

        await ctx.database.raw(`ALTER ROLE ${role} CONNECTION LIMIT 0`)
        await ctx.database.raw(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`,
        )
        await cut.waitForOutput('database error')
        await sleep(4_000)
        await ctx.database.raw(`ALTER ROLE ${role} CONNECTION LIMIT -1`)
        await waitFor('it is back', () => reconnects(cut) > 0)
        ctx.openGate('last page')

        for (const program of [cut, connected])
          assert.equal(await program.waitForExit(), 0, program.output)
        assert.deepEqual(await recoveries(ctx), [])
        assert.deepEqual(await ctx.ledger(), PAGES)
      } finally {
        await ctx.database.raw(`DROP ROLE ${role}`)
      }
    })
  },
)

/** In a pid namespace of its own, as a container has one: its process cannot be seen from any other. */
const UNSHARE = 'unshare --user --map-root-user --pid --fork --kill-child --mount-proc'.split(' ')
const canUnshare = spawnSync(UNSHARE[0]!, [...UNSHARE.slice(1), 'true']).status === 0

const HEARTBEAT_MS = 400
const LEASE_MS = 9_000
/** What a free session lock needs in silence beside it: a third of the lease, which is more than three heartbeats. */
const GRACE_MS = 3_000
const GAPS = 3

/** One page that lasts; the worker is alone with it, so each crash counts towards parking. */
const HANGING_CRAWL = `
  *targets() { yield { key: 'a' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await opened('last page')
    return { next: null, inTransaction: ledger(target.key, page) }
  },
  concurrency: 1,
  policy: { heartbeat: '${HEARTBEAT_MS}ms', lease: '${LEASE_MS}ms', maxCrashes: ${GAPS} },
`

/** A worker with nothing to do of its own: it only watches the others. */
async function startWatcher(ctx: ProcessTestContext): Promise<Program> {
  const path = ctx.module(
    'idle.ts',
    `export default defineCrawl({ source: 'idle', *targets() {}, async page() { return { next: null } } })`,
  )
  const program = ctx.unstuck('work', path)
  await program.waitForOutput('working on idle')
  return program
}

describe(
  'P8 P9 a worker in another pid namespace',
  { skip: !ENGINES.includes(postgresEngine) || !canUnshare },
  () => {
    test('P9 cut off for longer than the bound, three times: taken after it, no crash counted, claimed again, not parked', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const proxy = await TcpProxy.start(ctx.database.url)
      try {
        await startWatcher(ctx)
        const crawl = ctx.crawl(HANGING_CRAWL)
        const env = { UNSTUCK_DB: proxy.address }
        const cut = ctx.start([CLI, 'work', crawl, '--drain'], { env, under: UNSHARE })
        await ctx.waitForMarks('page')

        for (let n = 1; n <= GAPS; n++) {
          proxy.close()
          await waitFor('it is taken', async () => (await recoveries(ctx)).length === n)
          const { crashes, status } = await ctx.target('a')
          assert.deepEqual([status, crashes], ['planned', 1], 'its crash counts until it returns')
          await proxy.open()
          await ctx.waitForMarks('page', n + 1)
        }
        ctx.openGate('last page')

        assert.equal(await cut.waitForExit(), 0, cut.output)
        for (const { action, evidence } of await recoveries(ctx)) {
          const { presence, process: seen, heartbeatAgeMs } = evidence
          assert.deepEqual([action, presence, seen], ['replan', 'free', 'unknown'])
          assert.ok(
            heartbeatAgeMs > GRACE_MS && heartbeatAgeMs < LEASE_MS,
            `taken after ${heartbeatAgeMs} ms`,
          )
        }
        const { status, attempts } = await ctx.target('a')
        assert.deepEqual([status, attempts], ['done', GAPS + 1])
        assert.deepEqual(await ctx.ledger(), ['a/1'])
      } finally {
        proxy.close()
      }
    })

    test('P9 a wrapped command that is cut off beyond its lease keeps its run while its source cannot be taken', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const proxy = await TcpProxy.start(ctx.database.url)
      try {
        await startWatcher(ctx)
        ctx.writeConfig({
          portal: { heartbeat: `${HEARTBEAT_MS}ms`, lease: `${3 * HEARTBEAT_MS}ms` },
        })
        const args = [CLI, 'run', 'portal', '--', 'bash', '-c', COMMAND]
        const env = { UNSTUCK_DB: proxy.address }
        const command = ctx.start(args, { env, under: UNSHARE })
        await command.waitForOutput('] up')
        proxy.close()
        const store = await ctx.store()
        await waitFor('it is silent for three leases', async () =>
          (await store.observations()).some(
            ({ worker, evidence }) =>
              worker.source === 'portal' && evidence.heartbeatAgeMs > 9 * HEARTBEAT_MS,
          ),
        )
        await proxy.open()
        ctx.openGate('last page')

        assert.equal(await command.waitForExit(), 0, command.output)
        assert.deepEqual(await recoveries(ctx), [])
        const run = await ctx.run('portal')
        assert.deepEqual([run.status, run.resumes, run.counts.pages], ['succeeded', 0, 1])
      } finally {
        proxy.close()
      }
    })

    test('P8 killed -9 with its connection: claimable after the bound, long before its lease', async (t) => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      await startWatcher(ctx)
      const worker = ctx.start([CLI, 'work', ctx.crawl(HANGING_CRAWL)], { under: UNSHARE })
      await ctx.waitForMarks('page')
      const killedAt = performance.now()
      // What unshare has started dies with it.
      kill(worker.pid, 'SIGKILL')
      await waitFor('it is taken', async () => (await recoveries(ctx)).length === 1)

      t.diagnostic(`claimable after ${Math.round(performance.now() - killedAt)} ms`)
      const [taken] = await recoveries(ctx)
      const { presence, process: seen, heartbeatAgeMs } = taken!.evidence
      assert.deepEqual([taken!.action, presence, seen], ['replan', 'free', 'unknown'])
      assert.ok(
        heartbeatAgeMs > GRACE_MS && heartbeatAgeMs < LEASE_MS,
        `taken after ${heartbeatAgeMs} ms`,
      )
    })
  },
)
