import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { ServerGate } from '../../src/testing/server-switch.ts'
import type { Evidence } from '../../src/core/model/worker.ts'
import { CLI, ENGINES, kill, Stage, until, type Program } from './harness.ts'

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
function returns({ output }: Program): number {
  return output.split('the database is back after').length - 1
}

/** What recovery did, and by which evidence. */
async function recovered(stage: Stage): Promise<{ action: string; evidence: Evidence }[]> {
  return (await stage.verdicts())
    .map(({ action, evidence }) => ({ action, evidence: evidence as Evidence }))
    .reverse()
}

describe(
  'P9 connections of a living worker are cut while another stays connected',
  { skip: !ENGINES.includes(postgresEngine) },
  () => {
    test('P9 for 2, 4 and 10 s on the same host: nothing is taken and each page is done once', async () => {
      await using stage = await Stage.set(postgresEngine)
      const gate = await ServerGate.to(stage.database.url)
      const env = { UNSTUCK_DB: gate.address }
      try {
        const crawl = stage.crawl(CRAWL)
        const cut = stage.start([CLI, 'work', crawl, '--drain'], { env })
        const command = stage.start([CLI, 'run', 'portal', '--', 'bash', '-c', COMMAND], { env })
        await command.says('] up')
        await stage.marked('page 3', 2)
        const connected = stage.unstuck('work', crawl, '--drain')
        await stage.marked('page 3', 4)

        for (const [n, gapMs] of [2_000, 4_000, 10_000].entries()) {
          gate.shut()
          const by = stage.unstuck('recover', '--yes', '--json')
          await sleep(gapMs)
          await gate.open()
          await until('both are back', () => returns(cut) > n && returns(command) > n)
          assert.equal(await by.end(), 0, by.output)
          assert.deepEqual(
            (JSON.parse(by.output) as { verdicts: unknown[] }).verdicts,
            [],
            `a person’s recover takes nothing in a gap of ${gapMs} ms`,
          )
        }
        stage.open('last page')

        for (const program of [cut, connected, command])
          assert.equal(await program.end(), 0, program.output)
        assert.deepEqual(await recovered(stage), [])
        assert.deepEqual(await stage.ledger(), PAGES)
        for (const { status, attempts, crashes } of (await stage.targets()).values())
          assert.deepEqual([status, attempts, crashes], ['done', 1, 0])
        const run = await stage.run('portal')
        assert.deepEqual([run.status, run.resumes, run.counts.pages], ['succeeded', 0, 1])
      } finally {
        gate.shut()
      }
    })

    test('P9 its sessions are ended and no connection slot is left for it: nothing is taken', async () => {
      await using stage = await Stage.set(postgresEngine)
      const role = `cut_${process.pid}_${Date.now()}`
      await stage.database.raw(`CREATE ROLE ${role} LOGIN PASSWORD 'cut' IN ROLE postgres`)
      const address = new URL(stage.database.url)
      address.username = role
      address.password = 'cut'
      try {
        const crawl = stage.crawl(CRAWL)
        const env = { UNSTUCK_DB: address.href }
        const cut = stage.start([CLI, 'work', crawl, '--drain'], { env })
        await stage.marked('page 3', 2)
        const connected = stage.unstuck('work', crawl, '--drain')
        await stage.marked('page 3', 4)

        await stage.database.raw(`ALTER ROLE ${role} CONNECTION LIMIT 0`)
        await stage.database.raw(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`,
        )
        await cut.says('trouble with the database')
        await sleep(4_000)
        await stage.database.raw(`ALTER ROLE ${role} CONNECTION LIMIT -1`)
        await until('it is back', () => returns(cut) > 0)
        stage.open('last page')

        for (const program of [cut, connected]) assert.equal(await program.end(), 0, program.output)
        assert.deepEqual(await recovered(stage), [])
        assert.deepEqual(await stage.ledger(), PAGES)
      } finally {
        await stage.database.raw(`DROP ROLE ${role}`)
      }
    })
  },
)

/** In a pid namespace of its own, as a container has one: its process cannot be seen from any other. */
const ELSEWHERE = 'unshare --user --map-root-user --pid --fork --kill-child --mount-proc'.split(' ')
const canUnshare = spawnSync(ELSEWHERE[0]!, [...ELSEWHERE.slice(1), 'true']).status === 0

const HEARTBEAT_MS = 400
const LEASE_MS = 9_000
/** What a free session lock needs in silence beside it: a third of the lease, which is more than three heartbeats. */
const GRACE_MS = 3_000
const GAPS = 3

/** One page that lasts; the worker is alone with it, so each crash counts towards parking. */
const HELD = `
  *targets() { yield { key: 'a' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await opened('last page')
    return { next: null, inTransaction: ledger(target.key, page) }
  },
  concurrency: 1,
  policy: { heartbeat: ${HEARTBEAT_MS}, lease: ${LEASE_MS}, maxCrashes: ${GAPS} },
`

/** A worker with nothing to do of its own: it only watches the others. */
async function watcher(stage: Stage): Promise<Program> {
  const path = stage.module(
    'idle.ts',
    `export default defineCrawl({ source: 'idle', *targets() {}, async page() { return { next: null } } })`,
  )
  const program = stage.unstuck('work', path)
  await program.says('working on idle')
  return program
}

describe(
  'P8 P9 a worker in another pid namespace',
  { skip: !ENGINES.includes(postgresEngine) || !canUnshare },
  () => {
    test('P9 cut off for longer than the bound, three times: taken after it, no crash counted, claimed again, not parked', async () => {
      await using stage = await Stage.set(postgresEngine)
      const gate = await ServerGate.to(stage.database.url)
      try {
        await watcher(stage)
        const crawl = stage.crawl(HELD)
        const env = { UNSTUCK_DB: gate.address }
        const cut = stage.start([CLI, 'work', crawl, '--drain'], { env, under: ELSEWHERE })
        await stage.marked('page')

        for (let n = 1; n <= GAPS; n++) {
          gate.shut()
          await until('it is taken', async () => (await recovered(stage)).length === n)
          const { crashes, status } = await stage.target('a')
          assert.deepEqual([status, crashes], ['planned', 1], 'its crash counts until it returns')
          await gate.open()
          await stage.marked('page', n + 1)
        }
        stage.open('last page')

        assert.equal(await cut.end(), 0, cut.output)
        for (const { action, evidence } of await recovered(stage)) {
          const { presence, process: seen, beatAgeMs } = evidence
          assert.deepEqual([action, presence, seen], ['replan', 'free', 'unknown'])
          assert.ok(beatAgeMs > GRACE_MS && beatAgeMs < LEASE_MS, `taken after ${beatAgeMs} ms`)
        }
        const { status, attempts } = await stage.target('a')
        assert.deepEqual([status, attempts], ['done', GAPS + 1])
        assert.deepEqual(await stage.ledger(), ['a/1'])
      } finally {
        gate.shut()
      }
    })

    test('P9 a wrapped command that is cut off beyond its lease keeps its run while its source cannot be taken', async () => {
      await using stage = await Stage.set(postgresEngine)
      const gate = await ServerGate.to(stage.database.url)
      try {
        await watcher(stage)
        stage.config({ portal: { heartbeat: HEARTBEAT_MS, lease: 3 * HEARTBEAT_MS } })
        const args = [CLI, 'run', 'portal', '--', 'bash', '-c', COMMAND]
        const env = { UNSTUCK_DB: gate.address }
        const command = stage.start(args, { env, under: ELSEWHERE })
        await command.says('] up')
        gate.shut()
        const store = await stage.store()
        await until('it is silent for three leases', async () =>
          (await store.workers()).some(
            ({ worker, evidence }) =>
              worker.source === 'portal' && evidence.beatAgeMs > 9 * HEARTBEAT_MS,
          ),
        )
        await gate.open()
        stage.open('last page')

        assert.equal(await command.end(), 0, command.output)
        assert.deepEqual(await recovered(stage), [])
        const run = await stage.run('portal')
        assert.deepEqual([run.status, run.resumes, run.counts.pages], ['succeeded', 0, 1])
      } finally {
        gate.shut()
      }
    })

    test('P8 killed -9 with its connection: claimable after the bound, long before its lease', async (t) => {
      await using stage = await Stage.set(postgresEngine)
      await watcher(stage)
      const worker = stage.start([CLI, 'work', stage.crawl(HELD)], { under: ELSEWHERE })
      await stage.marked('page')
      const killedAt = performance.now()
      // What unshare has started dies with it.
      kill(worker.pid, 'SIGKILL')
      await until('it is taken', async () => (await recovered(stage)).length === 1)

      t.diagnostic(`claimable after ${Math.round(performance.now() - killedAt)} ms`)
      const [taken] = await recovered(stage)
      const { presence, process: seen, beatAgeMs } = taken!.evidence
      assert.deepEqual([taken!.action, presence, seen], ['replan', 'free', 'unknown'])
      assert.ok(beatAgeMs > GRACE_MS && beatAgeMs < LEASE_MS, `taken after ${beatAgeMs} ms`)
    })
  },
)
