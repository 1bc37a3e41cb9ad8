import assert from 'node:assert/strict'
import { createServer, connect, type AddressInfo, type Socket } from 'node:net'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { startPooler } from '../../../../test/pooler.ts'
import {
  PageRejectedError,
  StoreReadOnlyError,
  StoreUnavailableError,
  UnusableStoreError,
  UsageError,
} from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import {
  itemsOf,
  assertAllOk,
  begin,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  pendingVerdicts,
  unwrap,
  nextCheckpoint,
  enqueueSingle,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { genericPlan } from '../../../testing/generic-plan.ts'
import { createDatabase, startServer } from '../../../testing/postgres.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import type { StatementMoment } from '../statement-channel.ts'
import type { Store } from '../store.ts'
import { BACKWARD, FORWARD } from './audit.ts'
import { CHECKPOINT } from './checkpoints.ts'
import { CLAIM } from './claims.ts'
import { LIVE_COUNTERS, LIVE_RUNS } from './live-runs.ts'
import { MIGRATIONS } from './migrate.ts'
import { openPostgres } from './open.ts'

type Disposables = { readonly stack: AsyncDisposableStack; readonly url: string }

/** A database, and a stack that takes it down last. */
async function setUp(): Promise<Disposables> {
  const stack = new AsyncDisposableStack()
  const { url, drop } = await createDatabase()
  stack.defer(drop)
  return { stack, url }
}

async function openOn(stack: AsyncDisposableStack, url: string): Promise<Store> {
  const store = await openPostgres(url, { connections: 4 })
  stack.defer(() => store.close())
  return store
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('behind a transaction-mode pooler', () => {
  test('it is detected and reported, and everything works without a session', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const pooler = stack.use(await startPooler(url))
    const store = await openOn(stack, pooler.url)
    assert.match(store.warnings.join(), /pooler/)

    const { presence } = await store.acquirePresence(newId())
    assert.deepEqual(presence, { kind: 'none' })
    const worker = await registerWorker(store, { presence })
    const [witnessed] = await store.observations()
    assert.equal(witnessed!.evidence.presence, 'unknown')

    const run = await enqueueCrawl(store, 12)
    // More often than a plan is prepared, on more connections than one.
    for (let round = 0; round < 12; round++) {
      const claims = await claim(store, worker, 4)
      const saved = await Promise.all(
        claims.map((c) => savePage(store, c, { items: makeItems(round, 3) })),
      )
      assertAllOk(await (round % 2 === 0 ? store.release(saved) : store.finish(saved)))
      await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
    }
    const begun = await begin(store, worker, { source: 'single' })
    assert.ok(begun.claimed)
    await recoverWorker(store, worker)
    await store.retireWorker(worker)

    const settled = new Map((await store.settle()).map(({ run, status }) => [run, status]))
    assert.equal(settled.get(run), 'succeeded')
    assert.equal(settled.get(begun.claimed.run), 'interrupted')
  })

  test('a direct connection is not taken for one', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const store = await openOn(stack, url)
    assert.deepEqual(store.warnings, [])
  })

  test('a server that may lose what it acknowledged is refused', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const name = new URL(url).pathname.slice(1)
    await query(url, `ALTER DATABASE ${name} SET synchronous_commit = off`)
    const pooler = stack.use(await startPooler(url))
    await assert.rejects(openPostgres(pooler.url), UnusableStoreError)
  })
})

test('synchronous_commit is turned on where the server has it off', async () => {
  const { stack, url } = await setUp()
  await using _ = stack
  await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`)
  const store = await openOn(stack, url)
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 1)
  let setting: unknown
  const [outcome] = await store.checkpoint(
    [nextCheckpoint(await claimOne(store, worker))],
    async (tx) => {
      ;[setting] = await tx.query('SHOW synchronous_commit')
    },
  )
  unwrap(outcome!)
  assert.deepEqual(setting, { synchronous_commit: 'on' })
})

/** Passes bytes between client and server, until told to lose the next answer or to fall silent. */
async function startProxy(
  stack: AsyncDisposableStack,
  server: string,
): Promise<{ url: string; loseNextAnswer(): void; fallSilent(): void }> {
  const target = new URL(server)
  const sockets = new Set<Socket>()
  let mode: 'pass' | 'lose' | 'silent' = 'pass'
  const listener = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.on('data', (bytes) => mode !== 'silent' && upstream.write(bytes))
    upstream.on('data', (bytes) => {
      if (mode === 'pass') client.write(bytes)
      if (mode !== 'lose') return
      mode = 'pass'
      client.destroy()
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  stack.defer(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>((resolve) => listener.close(() => resolve()))
  })
  const url = new URL(server)
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.href,
    loseNextAnswer: () => (mode = 'lose'),
    fallSilent: () => (mode = 'silent'),
  }
}

/** Runs `act` when the statement is about to be sent, once. */
function beforeStatement(name: string, act: () => void): Disposable {
  const listen = (message: unknown): void => {
    const moment = message as StatementMoment
    if (moment.name !== name || moment.moment !== 'before') return
    unsubscribe('unstuck:statement', listen)
    act()
  }
  subscribe('unstuck:statement', listen)
  return { [Symbol.dispose]: () => void unsubscribe('unstuck:statement', listen) }
}

describe('an answer that got lost', () => {
  type Scene = { store: Store; lose<T>(statement: string, call: () => Promise<T>): Promise<T> }

  /** The call fails because its answer is lost after the server did its part; then it is made again. */
  async function scene(stack: AsyncDisposableStack, url: string): Promise<Scene> {
    const proxy = await startProxy(stack, url)
    const store = await openOn(stack, proxy.url)
    return {
      store,
      lose: async (statement, call) => {
        using _ = beforeStatement(statement, proxy.loseNextAnswer)
        await assert.rejects(call(), StoreUnavailableError, `${statement} was answered`)
        return call()
      },
    }
  }

  test('of a page: it is in once', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const { store, lose } = await scene(stack, url)
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 1)
    const next = nextCheckpoint(await claimOne(store, worker), { items: makeItems(0, 3) })

    const [outcome] = await lose('checkpoint:page', () => store.checkpoint([next]))

    assert.equal(unwrap(outcome!).seq, 1)
    const { counts } = (await store.run(run))!
    assert.deepEqual([counts.pages, counts.itemsNew, counts.refused], [1, 3, 0])
  })

  test('of a COMMIT with the user’s own tables: they are written once', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const { store, lose } = await scene(stack, url)
    await query(url, 'CREATE TABLE ledger (page int)')
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    const next = nextCheckpoint(await claimOne(store, worker))

    const [outcome] = await lose('checkpoint:commit', () =>
      store.checkpoint([next], (tx) => tx.query('INSERT INTO ledger VALUES ($1)', [next.page])),
    )

    assert.equal(unwrap(outcome!).seq, 1)
    assert.deepEqual(await query(url, 'SELECT * FROM ledger'), [{ page: 1 }])
  })

  test('of claims, their ends, and new runs: nothing is done twice', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const { store, lose } = await scene(stack, url)
    const worker = await registerWorker(store)
    const run = newId()
    await lose('enqueue', () =>
      store.enqueue({ id: run, source: SOURCE, kind: 'crawl', policy: DEFAULT_POLICY }),
    )
    await lose('plan', () => store.plan(run, [{ key: 'a' }, { key: 'b' }, { key: 'c' }]))
    await store.finishPlanning(run)

    const claimIds = [newId(), newId(), newId()]
    const request = { worker, source: SOURCE, claimIds, isIdle: true, singleSlot: false }
    const claims = await lose('claim', () => store.claim(request))
    assert.deepEqual(
      claims.map((c) => c.claimId),
      claimIds,
    )
    assert.deepEqual(
      claims.map((c) => c.epoch),
      [1, 1, 1],
    )

    assertAllOk(await lose('finish', () => store.finish([claims[0]!])))
    assertAllOk(await lose('release', () => store.release([claims[1]!])))
    const failure = { ...claims[2]!, error: 'no', becomes: 'failed' as const }
    assertAllOk(await lose('fail', () => store.fail([failure])))
    const { targets, refused } = (await store.run(run))!.counts
    assert.deepEqual([targets.done, targets.planned, targets.failed, refused], [1, 1, 1, 0])

    const request2 = {
      source: 'single',
      worker,
      policy: DEFAULT_POLICY,
      run: newId(),
      target: newId(),
      claimId: newId(),
    }
    const begun = await lose('begin:commit', () => store.begin(request2))
    assert.equal(begun.claimed?.claimId, request2.claimId)
    assert.equal(begun.claimed.epoch, 1)
  })

  test('of a retry: one run follows', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const { store, lose } = await scene(stack, url)
    const run = await enqueueCrawl(store, 1)
    const newRun = newId()

    await lose('retry:commit', () =>
      store.retryRun({ run, newRun, actor: 'alice', because: 'again' }),
    )

    assert.equal((await store.liveRun(SOURCE))?.id, newRun)
    assert.equal((await store.audit({ limit: 10 })).length, 1)
  })

  test('of a recovery: it is applied and audited once', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const { store, lose } = await scene(stack, url)
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 1)
    await claimOne(store, worker)
    const verdicts = await pendingVerdicts(store, worker)

    await lose('recover:commit', () => store.applyVerdicts(verdicts, 'the tests'))

    assert.equal((await store.audit({ limit: 10 })).length, 1)
  })
})

describe('at the moment another transaction commits', () => {
  /** Holds this open in a transaction of its own for as long as another transaction waits for it. */
  async function meanwhile<T>(
    stack: AsyncDisposableStack,
    url: string,
    statements: string,
    call: () => Promise<T>,
  ): Promise<T> {
    const other = new Client({ connectionString: url })
    await other.connect()
    stack.defer(() => other.end())
    await other.query(`BEGIN; ${statements}`)
    const answer = call()
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    for (let tries = 0; (await query(url, waiting)).length === 0; tries++) {
      assert.ok(tries < 3_000, 'no transaction waited')
      await sleep(10)
    }
    await other.query('COMMIT')
    return answer
  }

  const claimed = (run: string): string => /* sql */ `
    UPDATE unstuck.run SET status = 'running' WHERE id = '${run}';
    UPDATE unstuck.target SET status = 'in_progress' WHERE run_id = '${run}'
  `

  test('a run with a concurrent claim is not treated as unowned', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const store = await openOn(stack, url)
    const run = await enqueueCrawl(store, 1)
    const asked = { run, to: 'abandoned', action: 'abandon', evidence: null } as const
    const auditInfo = { actor: 'alice', because: 'dead' }

    const moved = await meanwhile(stack, url, claimed(run), () =>
      store.moveRun({ ...asked, ...auditInfo, expected: { isUnclaimed: true } }),
    )

    assert.equal(moved, false)
    assert.equal((await store.run(run))!.status, 'running')
  })

  test('a run that is cancelled is not begun: a new one is', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const store = await openOn(stack, url)
    const worker = await registerWorker(store)
    const run = await enqueueSingle(store)
    const cancelled = `UPDATE unstuck.run SET status = 'cancelled' WHERE id = '${run}'`

    const begun = await meanwhile(stack, url, cancelled, () => begin(store, worker))

    assert.ok(begun.claimed)
    assert.notEqual(begun.claimed.run, run)
    assert.equal((await store.run(run))!.status, 'cancelled')
  })

  const hold = { source: SOURCE, killTimeoutMs: 30_000, processTag: 'c' }

  test('P10 a source lock acquired by a worker that just registered is not taken from it', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const store = await openOn(stack, url)
    const [old, holder] = [await registerWorker(store), newId()]
    const taken = /* sql */ `
      INSERT INTO unstuck.worker (id, source, host, pid, presence, version, heartbeat_ms, lease_ms)
      SELECT '${holder}', source, host, pid, presence, version, heartbeat_ms, lease_ms FROM unstuck.worker;
      UPDATE unstuck.source_lock SET worker_id = '${holder}' WHERE source = '${SOURCE}'
    `
    await store.lockSource({ ...hold, worker: old })
    await store.unlockSource({ source: SOURCE, worker: old })

    const sourceLock = await meanwhile(stack, url, taken, () =>
      store.lockSource({ ...hold, worker: old }),
    )

    assert.equal(sourceLock.worker, holder)
  })

  test('P9 a heartbeating holder keeps its source lock against concurrent takers and unlocks', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const store = await openOn(stack, url)
    const [holder, other] = [await registerWorker(store), await registerWorker(store)]
    const sourceLock = await store.lockSource({ ...hold, worker: holder })
    const beat = `UPDATE unstuck.worker SET heartbeats = heartbeats + 1 WHERE id = '${holder}'`

    const instead = { worker: holder, heartbeats: 0 }
    const seen = await meanwhile(stack, url, beat, () =>
      store.lockSource({ ...hold, worker: other, takeOverFrom: instead }),
    )
    const freed = await meanwhile(stack, url, beat, () =>
      store.unlockSource({ source: SOURCE, worker: holder, heartbeats: 1 }),
    )

    assert.deepEqual(seen, sourceLock)
    assert.equal(freed, false)
    assert.deepEqual((await store.sourceLocks(SOURCE))[0], sourceLock)
  })

  test('a worker that is being retired is not claimed for in between', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const store = await openOn(stack, url)
    const worker = await registerWorker(store)
    const retiring = `SELECT FROM unstuck.worker WHERE id = '${worker}' FOR UPDATE`

    const begun = await meanwhile(stack, url, retiring, () => begin(store, worker))

    assert.ok(begun.claimed, 'it waited, as it should')
  })
})

test('a run with more targets and items than fit into one statement is put back and deleted whole', async () => {
  const { stack, url } = await setUp()
  await using _ = stack
  const store = await openOn(stack, url)
  const run = await enqueueCrawl(store, 1)
  await query(
    url,
    /* sql */ `
    INSERT INTO unstuck.target (id, run_id, key, group_name, status)
    SELECT gen_random_uuid(), '${run}', 'many-' || n, 'g' || n % 3, 'failed' FROM generate_series(1, 25000) n;
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, failed)
    SELECT run_id, group_name, '', count(*) FROM unstuck.target WHERE status = 'failed' GROUP BY run_id, group_name;
    INSERT INTO unstuck.item (source, key, key_version, data, changed_in, run_id)
    SELECT '${SOURCE}', 'many-' || n, 0, '{}', '', CASE WHEN n % 2 = 0 THEN '${run}'::uuid ELSE gen_random_uuid() END
      FROM generate_series(1, 25000) n
  `,
  )
  const auditInfo = { actor: 'alice', because: 'again' }
  const asked = { run, action: 'reset-failed', statuses: ['failed'], reopen: false } as const

  const again = await store.replan({ ...asked, dryRun: false, ...auditInfo })

  assert.deepEqual(again, { targets: 25_000, reopened: false })
  const { planned, failed } = (await store.run(run))!.counts.targets
  assert.deepEqual([planned, failed], [25_001, 0])
  const end = { run, to: 'cancelled', action: 'cancel', evidence: null, expected: {} } as const
  await store.moveRun({ ...end, ...auditInfo })
  assert.deepEqual(await store.deleteRun({ run, withItems: true, ...auditInfo }), {
    targets: 25_001,
    items: 12_500,
  })
  assert.deepEqual(await query(url, 'SELECT count(*)::int FROM unstuck.item'), [{ count: 12_500 }])
})

test('a reason with a NUL or half a character in it is kept without', async () => {
  const { stack, url } = await setUp()
  await using _ = stack
  const store = await openOn(stack, url)
  const run = await enqueueCrawl(store, 2)
  const [target] = (await store.targets(run, { limit: 1 })).items
  const auditInfo = { actor: 'al\0ice', because: 'a\0b \ud83d' }

  await store.parkTargets({ targets: [target!.id], ...auditInfo })
  const move = { run, to: 'cancelled', action: 'cancel', expected: {} } as const
  await store.moveRun({ ...move, evidence: { host: 'h\0' }, ...auditInfo })

  assert.equal((await store.run(run))!.error, 'ab \ufffd')
  assert.equal((await store.target(target!.id))!.lastError, 'ab \ufffd')
  for (const { actor, because } of await store.audit({ run, limit: 5 })) {
    assert.deepEqual([actor, because], ['alice', 'ab \ufffd'])
  }
  const rewind = { target: target!.id, to: 0, next: null, actor: 'alice', because: 'again' }
  await assert.rejects(store.rewind({ ...rewind, cursor: 'a\0b' }), UsageError)
})

describe('a failing server', () => {
  test('one that accepts and never responds is given up within seconds', async () => {
    await using stack = new AsyncDisposableStack()
    const mute = createServer((socket) => socket.on('error', () => {}))
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    stack.defer(() => void mute.close())
    const { port } = mute.address() as AddressInfo

    await assert.rejects(openPostgres(`postgres://me:secret@127.0.0.1:${port}/db`), (error) => {
      assert.ok(error instanceof StoreUnavailableError)
      assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}/db`))
      assert.doesNotMatch(error.message, /secret/)
      return true
    })
  })

  test('one that falls silent under an open connection is given up too', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const proxy = await startProxy(stack, url)
    const store = await openOn(stack, `${proxy.url}?query_timeout=2000`)
    await store.now()
    proxy.fallSilent()
    await assert.rejects(store.now(), StoreUnavailableError)
  })

  test('a restart is survived: calls fail meanwhile, then go on, and the presence is taken again', async () => {
    await using stack = new AsyncDisposableStack()
    const server = await startServer()
    stack.defer(() => server.remove())
    const store = await openOn(stack, server.url)
    const held = await store.acquirePresence(newId())
    stack.defer(() => held.release())
    const worker = await registerWorker(store, { presence: held.presence })
    const presence = async (): Promise<string> => (await store.observations())[0]!.evidence.presence
    assert.equal(await presence(), 'held')

    const stoppedAt = await store.now()
    await server.stop()
    await assert.rejects(
      store.heartbeat({ worker, claimIds: [], loopLagMs: 0 }),
      StoreUnavailableError,
    )
    await server.start()

    const answer = await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
    assert.ok(answer.serverStartedAt! >= stoppedAt)
    for (let tries = 0; (await presence()) !== 'held'; tries++) {
      assert.ok(tries < 1_000, 'the lock was not taken again')
      await sleep(50)
    }
  })

  test('an unknown database and a wrong password say what to do', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const nowhere = new URL(url)
    nowhere.pathname = 'no_such_database'
    await assert.rejects(openPostgres(nowhere.href), (error) => {
      assert.ok(error instanceof UnusableStoreError)
      assert.match(error.message, /createdb/)
      return true
    })
    const stranger = new URL(url)
    stranger.password = 'wrong'
    await assert.rejects(openPostgres(stranger.href), UnusableStoreError)
  })

  test('one that can only be read is refused', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    await openOn(stack, url)
    await query(
      url,
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`,
    )
    await assert.rejects(openPostgres(url), StoreReadOnlyError)
  })

  test('a user without the right to create opens a schema that is up to date, and no other', async () => {
    const { stack, url } = await setUp()
    await using _ = stack
    const role = `role_${newId().slice(-8)}`
    await query(url, `CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
    stack.defer(() => query(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`).then(() => {}))
    const theirs = new URL(url)
    theirs.username = role
    theirs.password = 'x'
    await assert.rejects(openPostgres(theirs.href), StoreReadOnlyError)

    await openOn(stack, url)
    await assert.rejects(openPostgres(theirs.href), StoreReadOnlyError)
    await query(
      url,
      `GRANT USAGE ON SCHEMA unstuck TO ${role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA unstuck TO ${role}`,
    )
    const store = await openOn(stack, theirs.href)
    await enqueueCrawl(store, 1)
  })
})

test('twenty stores that open an empty database at once create its schema once', async () => {
  const { stack, url } = await setUp()
  await using _ = stack
  const stores = await Promise.all(Array.from({ length: 20 }, () => openOn(stack, url)))
  await Promise.all(stores.map((store) => store.now()))
  const applied = await query(url, 'SELECT number FROM unstuck.migration ORDER BY number')
  assert.deepEqual(
    applied,
    MIGRATIONS.map(({ number }) => ({ number })),
  )
})

test('a failed statement inside the user’s function rolls back the page, even if its error is ignored', async () => {
  const { stack, url } = await setUp()
  await using _ = stack
  const store = await openOn(stack, url)
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 1)
  const next = nextCheckpoint(await claimOne(store, worker), { items: makeItems(0, 1) })

  await assert.rejects(
    store.checkpoint([next], (tx) => tx.query('SELECT 1/0').catch(() => {})),
    /division by zero.*nothing was saved/i,
  )
  await assert.rejects(
    store.checkpoint([next], async (tx) => {
      await tx.query('SELECT 1/0').catch(() => {})
      await tx.query('SELECT 1')
    }),
    /division by zero/,
  )

  assert.deepEqual(await itemsOf(store), [])
  assert.equal(unwrap((await store.checkpoint([next]))[0]!).seq, 1)
})

test('text that PostgreSQL cannot store rejects its page alone', async () => {
  const { stack, url } = await setUp()
  await using _ = stack
  const store = await openOn(stack, url)
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 4)
  const claims = await claim(store, worker, 4)
  const data = ['fine', 'a\0b', 'half \ud83d', 'fine too']

  const outcomes = await store.checkpoint(
    claims.map((c, n) => {
      const made = nextCheckpoint(c, { items: [{ key: `item-${n}`, data: null }] })
      // Past what replaces such text.
      return { ...made, items: [{ ...made.items[0]!, data: JSON.stringify(data[n]) }] }
    }),
  )

  assert.deepEqual(
    outcomes.map((outcome) => outcome.ok),
    [true, false, false, true],
  )
  for (const outcome of outcomes)
    assert.ok(outcome.ok || outcome.error instanceof PageRejectedError)
})

describe('plans', () => {
  type Plan = {
    'Node Type': string
    'Relation Name'?: string
    'Index Name'?: string
    Plans?: Plan[]
  }

  function nodes(plan: Plan): Plan[] {
    return [plan, ...(plan.Plans ?? []).flatMap(nodes)]
  }

  async function explain(url: string, statement: { text: string }): Promise<Plan[]> {
    const [plan] = await genericPlan(url, statement.text, 'json')
    return nodes((plan as [{ Plan: Plan }])[0].Plan)
  }

  async function setUpMany(): Promise<Disposables> {
    const { stack, url } = await setUp()
    const store = await openOn(stack, url)
    const run = await enqueueCrawl(store, 1)
    await query(
      url,
      /* sql */ `
      INSERT INTO unstuck.target (id, run_id, key, ready_at, crashes)
      SELECT gen_random_uuid(), '${run}', 'many-' || n,
             CASE WHEN n % 3 = 0 THEN now() + n * interval '1 s' END, (n % 100 = 0)::int
        FROM generate_series(1, 20000) n;
      INSERT INTO unstuck.item (source, key, key_version, data, changed_in, run_id)
      SELECT '${SOURCE}', 'many-' || n, 0, '{}', '', '${run}' FROM generate_series(1, 20000) n;
      ANALYZE unstuck.target, unstuck.item, unstuck.run
    `,
    )
    return { stack, url }
  }

  test('claiming walks the indexes in their order: no table is read, nothing is sorted but the answer', async () => {
    const { stack, url } = await setUpMany()
    await using _ = stack
    const plan = await explain(url, CLAIM)
    assert.deepEqual(
      plan.filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'target'),
      [],
    )
    const indexes = plan.map((node) => node['Index Name'])
    assert.equal(indexes.filter((name) => name === 'target_ready').length, 2)
    assert.equal(indexes.filter((name) => name === 'target_crashed').length, 1)
    const picks = plan.filter((node) => node['Node Type'] === 'LockRows')
    assert.deepEqual(
      picks.flatMap(nodes).filter((node) => node['Node Type'] === 'Sort'),
      [],
    )
  })

  test('a checkpoint finds its target and its items by key', async () => {
    const { stack, url } = await setUpMany()
    await using _ = stack
    const plan = await explain(url, CHECKPOINT)
    const read = plan.filter((node) => node['Node Type'] === 'Seq Scan')
    assert.deepEqual(read, [])
    assert.ok(plan.some((node) => node['Index Name'] === 'target_pkey'))
  })

  test('live runs are found by their index, whatever has ended before', async () => {
    const { stack, url } = await setUpMany()
    await using _ = stack
    await query(
      url,
      /* sql */ `
      INSERT INTO unstuck.run (id, source, kind, status, policy)
      SELECT gen_random_uuid(), 'old-' || n, 'single', 'succeeded', '{}' FROM generate_series(1, 20000) n;
      INSERT INTO unstuck.run_counters (run_id, group_name, writer) SELECT id, '', '' FROM unstuck.run;
      ANALYZE unstuck.run, unstuck.run_counters
    `,
    )
    for (const statement of [LIVE_RUNS, LIVE_COUNTERS]) {
      const plan = await explain(url, statement)
      assert.deepEqual(
        // No source is paused here, and an empty table is read whole.
        plan.filter(
          (node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== 'source',
        ),
        [],
      )
    }
  })

  test('the trail is read along its index, in either direction', async () => {
    const { stack, url } = await setUpMany()
    await using _ = stack
    await query(
      url,
      /* sql */ `
      INSERT INTO unstuck.audit (actor, action, source, run_id, because, evidence, before, after)
      SELECT '', '', '', gen_random_uuid(), '', '{}', '{}', '{}' FROM generate_series(1, 20000) n;
      ANALYZE unstuck.audit
    `,
    )
    for (const statement of [FORWARD, BACKWARD]) {
      const types = (await explain(url, statement)).map((node) => node['Node Type'])
      // The second one finds the key of the target of an entry.
      assert.deepEqual(types, ['Limit', 'Index Scan', 'Index Scan'], statement.name)
    }
  })
})
