import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { loadSettings } from '../../src/app/config.ts'
import type { Settings } from '../../src/contracts/settings.ts'
import { ADOPTED_SECTION } from '../../src/features/adopted/config.ts'
import { contextFor } from '../../src/app/open-context.ts'
import { thisProcess } from '../../src/core/host/identity.ts'
import { DEFAULT_RULES } from '../../src/features/alerts/rule.ts'
import type { WorkerId } from '../../src/core/model/id.ts'
import type { Policy } from '../../src/core/model/policy.ts'
import type { Store } from '../../src/core/store/store.ts'
import { withAdoptedTables } from '../../src/features/adopted/store-wrapper.ts'
import { AlertService } from '../../src/features/alerts/service.ts'
import { open } from '../../src/index.ts'
import { initialState } from '../../src/interfaces/top/state.ts'
import { takeSnapshot } from '../../src/interfaces/top/snapshot.ts'
import {
  assertAllOk,
  beginOne,
  claim,
  claimOne,
  enqueueCrawl,
  registerWorker,
  savePage,
} from '../../src/testing/fixtures.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { TestDatabase } from '../../src/testing/test-database.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import {
  createUserTable,
  insertRows,
  qualificationRuns,
  tenderRuns,
  type NewRow,
  type UserTable,
} from '../../src/testing/user-tables.ts'

/**
 * Puts a database into a situation and compares what every interface reports about it: status, recover, summary,
 * doctor, explain, alerts, HTTP, top and the library. They may differ in detail, never in the answer.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE

type Situation = {
  readonly severity: 'ok' | 'attention' | 'stuck'
  /** By source. */
  readonly health?: Readonly<Record<string, string>>
  /** What recovery would do or list, as `action source`. */
  readonly verdicts?: readonly string[]
  /** Rules of the alerts that are open then. */
  readonly alerts?: readonly string[]
  readonly config?: string
  readonly tables?: Readonly<Record<string, { table: UserTable; rows: NewRow[]; extra?: string }>>
  readonly arrange: (fixture: Fixture) => Promise<void>
}

class Fixture {
  readonly db: TestDatabase
  readonly store: Store

  constructor(db: TestDatabase, store: Store) {
    this.db = db
    this.store = store
  }

  /** In this process, which lives. */
  liveWorker(source = 'shop'): Promise<WorkerId> {
    return registerWorker(this.store, { source, heartbeatMs: 50, leaseMs: 15_000 })
  }

  /** Of a process that the kernel shows as gone. */
  deadWorker(source = 'shop'): Promise<WorkerId> {
    const process = { ...thisProcess(), pid: 4_194_297, startTicks: 1 }
    return registerWorker(this.store, { source, process, heartbeatMs: 50, leaseMs: 15_000 })
  }

  /** On another host: only its heartbeats are known. */
  remoteWorker(source = 'shop'): Promise<WorkerId> {
    const process = { ...thisProcess(), host: 'elsewhere', bootId: 'another' }
    return registerWorker(this.store, { source, process, heartbeatMs: 50, leaseMs: 15_000 })
  }

  /** A crawl with two targets; the worker holds one of them. */
  async crawl(worker: WorkerId, pages = 1, policy: Partial<Policy> = {}): Promise<void> {
    await enqueueCrawl(this.store, 2, { policy })
    let claimed = await claimOne(this.store, worker)
    for (let page = 0; page < pages; page++) claimed = await savePage(this.store, claimed)
  }

  async heartbeat(worker: WorkerId): Promise<void> {
    const held = await this.store.claimsOf(worker, null, 100)
    const claimIds = held.map(({ target }) => target.claimId!)
    await this.store.heartbeat({ worker, claimIds, loopLagMs: 0 })
  }

  /** Moves the time and keeps this worker alive. */
  async advance(ms: number, ...alive: WorkerId[]): Promise<void> {
    await this.db.advanceClock(ms)
    for (const worker of alive) await this.heartbeat(worker)
  }

  /** A run that its worker released with work left. */
  async interrupted(pages = 1): Promise<void> {
    const worker = await this.liveWorker()
    let claimed = await beginOne(this.store, worker)
    for (let page = 0; page < pages; page++) claimed = await savePage(this.store, claimed)
    assertAllOk(await this.store.release([claimed]))
    await this.store.retireWorker(worker)
    await this.store.settle()
  }
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  'nothing has run': { severity: 'ok', arrange: async () => {} },
  'a healthy run': {
    severity: 'ok',
    health: { shop: 'healthy' },
    arrange: async (the) => the.crawl(await the.liveWorker()),
  },
  'a queued run': {
    severity: 'ok',
    health: { shop: 'waiting' },
    arrange: async (the) => void (await enqueueCrawl(the.store, 2)),
  },
  'a worker killed with -9': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    verdicts: ['resume shop'],
    arrange: async (the) => the.crawl(await the.deadWorker()),
  },
  'a worker killed an hour ago, and no other running': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await the.advance(HOUR)
    },
  },
  'a silent worker on another host': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    verdicts: ['resume shop'],
    alerts: ['silent'],
    arrange: async (the) => {
      await the.crawl(await the.remoteWorker())
      await the.advance(2 * MINUTE)
    },
  },
  'a lost worker beside one that keeps the run healthy': {
    severity: 'attention',
    health: { shop: 'healthy' },
    verdicts: ['resume shop'],
    arrange: async (the) => {
      await the.crawl(await the.deadWorker())
      await claimOne(the.store, await the.liveWorker())
    },
  },
  'a stalled crawl': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    verdicts: ['alert shop', 'alert shop'],
    alerts: ['silent'],
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(16 * MINUTE, worker)
    },
  },
  'one stalled target in a crawl that makes progress': {
    severity: 'attention',
    health: { shop: 'healthy' },
    verdicts: ['alert shop'],
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await enqueueCrawl(the.store, 2)
      const [, second] = await claim(the.store, worker, 2)
      await the.advance(16 * MINUTE, worker)
      await savePage(the.store, second!)
    },
  },
  'a run longer than the maxDuration of the config': {
    severity: 'stuck',
    health: { shop: 'stalled' },
    verdicts: ['alert shop'],
    alerts: ['overrun'],
    config: `policies: { shop: { maxDuration: '1h', maxSilence: '9h' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(2 * HOUR, worker)
    },
  },
  'a run that the config allows to be silent': {
    severity: 'ok',
    health: { shop: 'healthy' },
    config: `policies: { shop: { maxSilence: '9h' } }`,
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await the.crawl(worker)
      await the.advance(HOUR, worker)
    },
  },
  'a run that is dead by age': {
    severity: 'stuck',
    health: { shop: 'dead' },
    verdicts: ['abandon shop'],
    alerts: ['dead'],
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2)
      await the.advance(25 * HOUR)
    },
  },
  'an interrupted run without progress that is dead by age': {
    severity: 'stuck',
    health: { shop: 'dead' },
    verdicts: ['abandon shop'],
    alerts: ['dead'],
    arrange: async (the) => {
      await the.interrupted(0)
      await the.advance(25 * HOUR)
    },
  },
  'a run that is dead by the age of the config': {
    severity: 'stuck',
    health: { shop: 'dead' },
    verdicts: ['abandon shop'],
    alerts: ['dead'],
    config: `policies: { shop: { abandonAfter: '13h' } }`,
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2)
      await the.advance(14 * HOUR)
    },
  },
  'a dead run that is cleaned automatically': {
    severity: 'stuck',
    health: { shop: 'dead' },
    verdicts: ['abandon shop'],
    arrange: async (the) => {
      await enqueueCrawl(the.store, 2, { policy: { autoClean: true } })
      await the.advance(25 * HOUR)
    },
  },
  'a run interrupted just now': {
    severity: 'ok',
    health: { shop: 'interrupted' },
    arrange: (the) => the.interrupted(),
  },
  'an interrupted run that no worker continues': {
    severity: 'attention',
    health: { shop: 'interrupted' },
    alerts: ['silent'],
    arrange: async (the) => {
      await the.interrupted()
      await the.advance(16 * MINUTE)
    },
  },
  'a parked target': {
    severity: 'attention',
    health: { shop: 'healthy' },
    alerts: ['parked'],
    arrange: async (the) => {
      await the.crawl(await the.liveWorker())
      const run = (await the.store.liveRun('shop'))!
      const { items } = await the.store.targets(run.id, { statuses: ['planned'], limit: 1 })
      const targets = items.map(({ id }) => id)
      await the.store.parkTargets({ targets, actor: 'the tests', because: 'broken page' })
    },
  },
  'a run with a failed target that ended': {
    severity: 'attention',
    arrange: async (the) => {
      const worker = await the.liveWorker()
      await enqueueCrawl(the.store, 1)
      const claimed = await claimOne(the.store, worker)
      assertAllOk(await the.store.fail([{ ...claimed, error: 'HTTP 500', becomes: 'failed' }]))
      await the.store.settle()
    },
  },
  'a command that was given up': {
    severity: 'attention',
    alerts: ['gave-up'],
    arrange: async (the) => {
      const worker = await the.liveWorker()
      const lock = { source: 'shop', worker, killTimeoutMs: 1, processTag: 'tag' }
      await the.store.lockSource(lock)
      await the.store.unlockSource({ source: 'shop', worker, gaveUp: 'five crashes in a minute' })
    },
  },
  'a source lock left behind by a killed watchdog': {
    severity: 'stuck',
    health: { shop: 'orphaned' },
    verdicts: ['resume shop'],
    arrange: async (the) => {
      const worker = await the.deadWorker()
      await the.store.lockSource({ source: 'shop', worker, killTimeoutMs: 1, processTag: 'tag' })
      await savePage(the.store, await beginOne(the.store, worker))
    },
  },
  'an adopted row without a known owner': {
    severity: 'ok',
    health: { portal: 'healthy' },
    tables: { tenders: { table: tenderRuns, rows: [tender(10)] } },
    arrange: async () => {},
  },
  'an adopted row that the preset fails': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    verdicts: ['fail portal'],
    alerts: ['silent'],
    config: `preset: 'production'`,
    tables: { tenders: { table: tenderRuns, rows: [tender(40)] } },
    arrange: async () => {},
  },
  'an adopted row kept by onStale': {
    severity: 'attention',
    health: { portal: 'paused' },
    config: `policies: { portal: { staleAfter: '30m', onStale: 'keep' } }`,
    tables: { tenders: { table: tenderRuns, rows: [tender(40)] } },
    arrange: async () => {},
  },
  'a dead adopted row whose table has no status for it': {
    severity: 'stuck',
    health: { qualifications: 'dead' },
    verdicts: ['abandon qualifications'],
    alerts: ['dead'],
    tables: {
      qualifications: {
        table: qualificationRuns,
        rows: [{ id: 'q1', status: 'PROCESSING', createdAt: new Date(Date.now() - 25 * HOUR) }],
      },
    },
    arrange: async () => {},
  },
  'an adopted table that cannot be read': {
    severity: 'attention',
    health: { shop: 'waiting' },
    config: `adopted: { tenders: { table: 'gone', columns: { id: 'id', status: 'status', startedAt: 'started_at' }, statuses: { active: 'running', succeeded: 'ok', failed: 'failed' } } }`,
    arrange: async (the) => void (await enqueueCrawl(the.store, 0)),
  },
}

function tender(minutesOld: number): NewRow {
  const started_at = new Date(Date.now() - minutesOld * MINUTE)
  return { portal_name: 'portal', status: 'running', started_at }
}

type Json = Record<string, any>

async function cli(cwd: string, args: readonly string[]): Promise<{ code: number; data: Json }> {
  const { code, stdout, stderr } = await unstuck([...args, '--json'], { cwd })
  assert.ok(stdout !== '', stderr)
  return { code: code!, data: JSON.parse(stdout) as Json }
}

const named = (verdicts: readonly Json[]): string[] =>
  verdicts.map(({ action, source }) => `${action} ${source}`).sort()

/** Two reads are not of the same moment. */
const withoutAges = (text: string): string => text.replace(/[\d.]+ (ms|s|min|h|days)\b/g, 'N')

const sentencesOf = ({ sections }: Json): string[] =>
  sections.flatMap(({ sentences }: Json) => sentences.map(withoutAges))

for (const [name, situation] of Object.entries(SITUATIONS)) {
  describe(name, () => {
    const { severity, health = {}, verdicts = [], alerts = [], tables = {} } = situation
    const expectedCode = severity === 'ok' ? 0 : 3
    let db: TestDatabase
    let own: Store
    let store: Store
    let settings: Settings
    let cwd: string

    before(async () => {
      db = await sqliteEngine.fresh()
      cwd = dirname(db.url.slice('sqlite:'.length))
      for (const { table, rows } of Object.values(tables)) {
        await createUserTable(db.url, table)
        await insertRows(db.url, table, rows)
      }
      const adopted = Object.fromEntries(
        Object.entries(tables).map(([name, { table }]) => [name, table.options.sqlite]),
      )
      const parts = [
        `db: '${db.url}'`,
        ...(Object.keys(tables).length > 0 ? [`adopted: ${JSON.stringify(adopted)}`] : []),
        ...(situation.config === undefined ? [] : [situation.config]),
      ]
      writeFileSync(join(cwd, 'unstuck.config.mjs'), `export default { ${parts.join(', ')} }\n`)
      settings = await loadSettings(cwd)
      own = await db.open()
      const { policyOf } = settings
      const log = (): void => {}
      store = await withAdoptedTables(own, settings.section(ADOPTED_SECTION), {
        address: db.url,
        log,
        policyOf,
      })
      await situation.arrange(new Fixture(db, own))
    })
    after(() => db[Symbol.asyncDispose]())

    test('status', async () => {
      const { code, data } = await cli(cwd, ['status'])
      assert.equal(data.severity, severity, JSON.stringify(data.attention))
      assert.equal(code, expectedCode)
      assert.equal(data.attention.length > 0, severity !== 'ok')
      const bySource = data.runs.map(({ source, health }: Json) => [source, health])
      assert.deepEqual(Object.fromEntries(bySource), health)
      assert.equal(data.summary.includes('Something is stuck'), severity === 'stuck')
      const count = /(\d+) things? needs? attention/.exec(data.summary)?.[1]
      if (count !== undefined) assert.equal(Number(count), data.attention.length)
      for (const { id } of data.runs.filter(({ health }: Json) => health === 'dead')) {
        const shown = await cli(cwd, ['show', id])
        assert.doesNotMatch(JSON.stringify(shown.data.sections), /continues after/)
      }
    })

    test('recover --dry-run lists verdicts only where status reports something', async () => {
      const { code, data } = await cli(cwd, ['recover', '--dry-run'])
      assert.deepEqual(named(data.verdicts), verdicts.toSorted())
      assert.equal(data.active.length, Object.keys(health).length)
      if (verdicts.length > 0) assert.notEqual(severity, 'ok')
      assert.equal(code, data.severity === 'ok' ? 0 : 3)
      if (severity === 'ok' || severity === 'stuck') assert.equal(data.severity, severity)
    })

    test('summary and the library count as status does', async () => {
      const { code, data } = await cli(cwd, ['summary'])
      assert.equal(data.total, Object.keys(health).length)
      const dead = Object.values(health).filter((state) => state === 'dead').length
      assert.equal(data.dead.length, dead)
      assert.equal(code, data.severity === 'ok' ? 0 : 3)
      if (severity === 'ok' || severity === 'stuck') assert.equal(data.severity, severity)
      if (Object.keys(tables).length > 0) return
      const outer = process.cwd()
      process.chdir(cwd)
      try {
        await using unstuck = await open({ db: db.url, signals: false })
        const summed = await unstuck.summary()
        assert.deepEqual([summed.total, summed.dead.length], [data.total, dead])
        assert.deepEqual(
          named((await unstuck.recover({ dryRun: true })).verdicts),
          verdicts.toSorted(),
        )
      } finally {
        process.chdir(outer)
      }
    })

    test('explain agrees with the listed verdicts', async () => {
      const { data } = await cli(cwd, ['recover', '--dry-run'])
      for (const { run, target, action } of data.verdicts) {
        const explained = await cli(cwd, ['explain', target ?? run])
        assert.equal(explained.data.verdict.action, action)
      }
    })

    test('HTTP and top report the same severity, counts and verdicts', async () => {
      await using http = await createHttpTestContext({
        tokens: false,
        app: { open: async () => store, settings: async () => settings },
      })
      const overview = (await http.call('GET', '/api/overview')).body
      assert.equal(overview.severity, severity)
      assert.equal(overview.liveRuns, Object.keys(health).length)
      const recovery = (await http.call('GET', '/api/recovery')).body
      assert.deepEqual(named(recovery.verdicts), verdicts.toSorted())
      const operator = contextFor(store, settings, 'the tests')
      const { summary, style } = await takeSnapshot({ operator, settings }, initialState(false))
      assert.equal(withoutAges(summary), withoutAges(overview.summary))
      assert.equal(style, { ok: 'good', attention: 'warn', stuck: 'bad' }[severity])
    })

    test('every interface renders a verdict with the same sentence', async () => {
      const { data } = await cli(cwd, ['recover', '--dry-run'])
      const { stdout } = await unstuck(['recover', '--dry-run'], { cwd, env: { COLUMNS: '999' } })
      await using http = await createHttpTestContext({
        tokens: false,
        app: { open: async () => store, settings: async () => settings },
      })
      const { body } = await http.call('GET', '/api/recovery')
      const operator = contextFor(store, settings, 'the tests')
      const state = { ...initialState(false), view: 'recovery' } as const
      const { list } = await takeSnapshot({ operator, settings }, state)

      assert.deepEqual(sentencesOf(body), sentencesOf(data))
      for (const sentence of sentencesOf(data)) assert.ok(withoutAges(stdout).includes(sentence))
      assert.equal(list.rows.length, verdicts.length)
      for (const { about } of list.rows) {
        const reason = withoutAges(about)
        assert.ok(
          sentencesOf(data).some((sentence) => sentence.endsWith(`: ${reason}`)),
          reason,
        )
      }
    })

    test('doctor warns exactly when status does', async () => {
      const { data } = await cli(cwd, ['doctor'])
      const check = data.checks.find(({ check }: Json) => check === 'runs')
      assert.equal(check.result, severity === 'ok' ? 'ok' : 'warning')
    })

    test('alerts have the sentences and commands of status, and none is open while it is ok', async () => {
      const { policyOf } = settings
      const service = new AlertService({
        open: async () => store,
        policyOf,
        rules: DEFAULT_RULES,
        channels: [],
        url: null,
        worker: () => null,
        log: () => {},
      })
      await service.check(true)
      await service.stop()
      const { code, data } = await cli(cwd, ['alerts', 'list'])
      assert.deepEqual(data.items.map(({ rule }: Json) => rule).sort(), alerts.toSorted())
      assert.equal(code, alerts.length > 0 ? 3 : 0)
      const after = await cli(cwd, ['status'])
      assert.deepEqual([after.code, after.data.severity], [expectedCode, severity])
      for (const { run, source, because, command } of data.items as Json[]) {
        // Of parked targets an alert has the error of one too.
        const isSame = (item: Json): boolean =>
          item.run === run &&
          item.source === source &&
          item.command === command &&
          (because.startsWith(item.what) ||
            withoutAges(because) === withoutAges(item.because ?? ''))
        const { attention } = after.data
        assert.ok(attention.some(isSame), `${source}: ${because}: ${JSON.stringify(attention)}`)
      }
    })
  })
}
