import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { startPooler } from '../../../../test/pooler.ts'
import type { Checkpoint } from '../../../core/model/checkpoint.ts'
import type { ClaimedTarget } from '../../../core/model/claim.ts'
import { LeaseLostError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { ADD_ON_CONFLICT, SUMS } from '../../../core/store/postgres/counters.ts'
import { SEEN_AGAIN } from '../../../core/store/postgres/one-page.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import {
  assertAllOk,
  claim,
  claimOne,
  enqueueCrawl,
  getTarget,
  itemsOf,
  makeItems,
  nextCheckpoint,
  recoverWorker,
  registerWorker,
} from '../../../testing/fixtures.ts'
import { setUpOwnProgram, waitUntilBlocked, OwnProgram } from '../../../testing/own-program.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'

const LOST = { code: 'UN001' }
const NOT_NEXT = { code: 'UN002' }
const MISPLACED = { code: 'UN003' }
const INSERT = 'INSERT INTO ledger VALUES (1)'

/** What a page leaves behind, but for ids and times; of the times, which of them are those of the page saved `since`. */
async function rowsOf(db: TestDatabase, since: string): Promise<unknown[]> {
  return [
    await db.raw(/* sql */ `
      SELECT to_jsonb(t) - '{id,claim_id,worker_id,run_id,claimed_at,last_activity_at,finished_at}'::text[] AS row,
             finished_at > '${since}' AS finished, last_activity_at > '${since}' AS active
        FROM unstuck.target t
    `),
    await db.raw(/* sql */ `
      SELECT to_jsonb(i) - '{run_id,changed_in,first_seen_at,last_seen_at,changed_at}'::text[] AS row,
             right(changed_in, 2) AS changed_in, first_seen_at > '${since}' AS added, changed_at > '${since}' AS changed,
             last_seen_at > '${since}' AS seen
        FROM unstuck.item i ORDER BY key
    `),
    await db.raw(
      `SELECT group_name, ${SUMS} FROM unstuck.run_counters t GROUP BY run_id, group_name`,
    ),
  ]
}

describe('unstuck.checkpoint', () => {
  test('P3 the page and the rows of the program are in together, and neither before the COMMIT', async () => {
    await using scene = await setUpOwnProgram()
    const { store, run, claimed, program, ledger } = scene
    const page = nextCheckpoint(claimed, { items: makeItems(0, 3) })

    assert.equal(await program.begin(store, page), 1)
    await program.query(INSERT)
    assert.equal((await getTarget(store, claimed.target)).seq, 0)
    assert.deepEqual(await itemsOf(store), [])
    await program.query('COMMIT')

    assert.equal((await getTarget(store, claimed.target)).seq, 1)
    assert.equal((await itemsOf(store)).length, 3)
    assert.equal(await ledger(), 1)
    assert.equal(await store.isSaved(page), true)
    await assertCountersConsistent(store, run)
  })

  test('P3 after a rollback, an error and the end of the connection nothing is in, and the page can be saved again', async () => {
    await using scene = await setUpOwnProgram()
    const { db, store, run, claimed, program, connect, ledger } = scene
    const page = nextCheckpoint(claimed, { items: makeItems(0, 3) })

    await program.begin(store, page)
    await program.query(INSERT)
    await program.query('ROLLBACK')
    assert.equal(await store.isSaved(page), false)

    await program.begin(store, page)
    await program.query(INSERT)
    await assert.rejects(program.query('INSERT INTO nowhere VALUES (1)'), /nowhere/)
    await program.query('COMMIT')
    assert.equal(await store.isSaved(page), false)

    const killed = await connect()
    await killed.begin(store, page)
    await killed.query(INSERT)
    killed.disconnect()
    assert.equal(await store.isSaved(page), false)

    assert.deepEqual(await itemsOf(store), [])
    assert.equal((await getTarget(store, claimed.target)).seq, 0)
    assert.equal(
      (await db.raw(`SELECT FROM unstuck.run_counters WHERE writer LIKE 'tx/%'`)).length,
      0,
    )
    await assertCountersConsistent(store, run)
    await program.begin(store, page)
    await program.query(INSERT)
    await program.query('COMMIT')
    assert.equal(await ledger(), 1)
  })

  test('P3 P14 targets, items and counters are as after the checkpoints of the store, page by page', async () => {
    await using scene = await setUpOwnProgram()
    const { db, store, program } = scene
    const pages: Parameters<typeof nextCheckpoint>[1][] = [
      {
        items: [...makeItems(0, 3), ...makeItems(1, 1, { twice: true })],
        pageTarget: 9,
        skipped: 2,
      },
      { items: [], cursor: { at: 2 }, lastItemId: 'é"\\' },
      { items: makeItems(0, 3, { changed: true }), cursor: null },
      {
        items: [
          { url: 'https://shop.example/ü?b=1&a=2', data: [null, 'x'] },
          ...makeItems(2, 4, null),
        ],
        next: null,
      },
      { items: makeItems(0, 1, 5), done: true, next: null },
    ]
    const rows: unknown[] = []
    for (const save of [
      async (page: Checkpoint) => assertAllOk(await store.checkpoint([page])),
      async (page: Checkpoint) => void (await program.save(store, page)),
    ]) {
      await db.raw(
        'DELETE FROM unstuck.item; DELETE FROM unstuck.run_counters; DELETE FROM unstuck.target; DELETE FROM unstuck.run',
      )
      const run = await enqueueCrawl(store, [{ key: 'a', group: 'g' }])
      const worker = await registerWorker(store)
      let claimed = await claimOne(store, worker)
      const seen: unknown[] = []
      for (const given of pages) {
        const page = nextCheckpoint(claimed, { ...given, hash: `hash-${claimed.seq}` })
        const [clock] = await db.raw('SELECT clock_timestamp()::text AS now')
        await save(page)
        claimed = { ...claimed, seq: claimed.seq + 1, page: page.page }
        seen.push(await rowsOf(db, String(clock!['now'])))
      }
      rows.push(seen)
      await assertCountersConsistent(store, run)
    }

    assert.deepEqual(rows[1], rows[0])
    assert.equal((rows[0] as unknown[]).length, pages.length)
  })

  test('P1 a lost claim, a wrong epoch, another claim id and an unknown target raise UN001, and nothing is committed', async () => {
    await using scene = await setUpOwnProgram()
    const { store, run, worker, claimed, program, ledger } = scene
    const wrong = [
      { ...claimed, epoch: claimed.epoch + 1 },
      { ...claimed, epoch: claimed.epoch - 1 },
      { ...claimed, claimId: newId() },
      { ...claimed, target: newId() },
    ]
    const refused = async (claim: ClaimedTarget): Promise<void> => {
      const page = nextCheckpoint(claim, { items: makeItems(0, 1) })
      await assert.rejects(program.begin(store, page), LOST)
      await assert.rejects(program.query(INSERT), { code: '25P02' })
      assert.equal((await program.client.query('COMMIT')).command, 'ROLLBACK')
      await assert.rejects(store.isSaved(page), LeaseLostError)
    }

    for (const claim of wrong) await refused(claim)
    await recoverWorker(store, worker)
    await refused(claimed)
    const fresh = await claimOne(store, await registerWorker(store), { isIdle: true })
    await refused(claimed)

    assert.deepEqual(await itemsOf(store), [])
    assert.equal(await ledger(), 0)
    assert.equal(await program.save(store, nextCheckpoint(fresh)), 1)
    await assertCountersConsistent(store, run)
  })

  test('P5 P6 a page that is in, one with its number, and one that is behind raise UN002; a finished target is lost', async () => {
    await using scene = await setUpOwnProgram()
    const { store, claimed, program } = scene
    const first = nextCheckpoint(claimed)
    await program.save(store, first)

    await assert.rejects(program.save(store, first), { ...NOT_NEXT, message: /saved already/ })
    const other = nextCheckpoint(claimed, { next: 'another' })
    await assert.rejects(program.save(store, other), { ...NOT_NEXT, message: /does not follow/ })
    assert.equal(await store.isSaved(other), false)
    const behind = nextCheckpoint({ ...claimed, seq: 1, page: 0 })
    await assert.rejects(program.save(store, behind), NOT_NEXT)
    const ahead = nextCheckpoint({ ...claimed, seq: 2, page: 2 })
    await assert.rejects(program.save(store, ahead), NOT_NEXT)

    const last = nextCheckpoint({ ...claimed, seq: 1, page: 1 }, { done: true })
    assert.equal(await program.save(store, last), 2)
    assert.equal(await store.isSaved(last), true)
    await assert.rejects(program.save(store, last), { ...NOT_NEXT, message: /saved already/ })
    await assert.rejects(program.save(store, nextCheckpoint({ ...claimed, seq: 2, page: 2 })), LOST)
    assert.equal((await getTarget(store, claimed.target)).status, 'done')
  })

  test('a transaction that has written or locked before is refused, as is a second page in it', async () => {
    await using scene = await setUpOwnProgram()
    const { store, worker, claimed, program, ledger } = scene
    const page = nextCheckpoint(claimed)
    for (const before of [
      INSERT,
      'SELECT FROM unstuck.leader FOR UPDATE; SELECT pg_current_xact_id()',
    ]) {
      await program.query(`BEGIN; ${before}`)
      await assert.rejects(program.save(store, page), MISPLACED)
      await program.query('COMMIT')
    }
    assert.equal(await ledger(), 0)

    const other = await claimOne(store, worker)
    await program.begin(store, page)
    await assert.rejects(program.save(store, nextCheckpoint(other)), MISPLACED)
    await program.query('COMMIT')
    assert.equal((await getTarget(store, claimed.target)).seq, 0)

    await program.query('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM ledger')
    assert.equal(await program.save(store, page), 1)
    await program.query('COMMIT')
  })

  test('a savepoint that could take the page back alone is refused', async () => {
    await using scene = await setUpOwnProgram()
    const { store, claimed, program, ledger } = scene
    const page = nextCheckpoint(claimed, { items: makeItems(0, 1) })

    await program.query('BEGIN; SAVEPOINT before')
    await assert.rejects(program.save(store, page), { ...MISPLACED, message: /SAVEPOINT/ })
    await program.query('ROLLBACK TO before')
    assert.equal(await program.save(store, page).catch(() => 'refused'), 'refused')
    await program.query('ROLLBACK')

    await program.begin(store, page)
    await program.query(`SAVEPOINT after; ${INSERT}; ROLLBACK TO after; ${INSERT}; COMMIT`)
    assert.equal(await store.isSaved(page), true)
    assert.equal(await ledger(), 1)
  })

  test('what is no page raises an error that names what is wrong', async () => {
    await using scene = await setUpOwnProgram()
    const { store, claimed, program } = scene
    const { statement, parameter } = store.checkpointCall(
      nextCheckpoint(claimed, { items: makeItems(0, 1) }),
    )
    const whole = JSON.parse(parameter) as Record<string, unknown>
    const cases: [unknown, RegExp][] = [
      ['', /type json/],
      ['{', /type json/],
      [null, /not a JSON object/],
      ['null', /not a JSON object/],
      ['[]', /not a JSON object/],
      ['{}', /target, epoch, claim_id, expected_seq, page, skipped, hash, done, items/],
      ...Object.entries({
        target: 'x',
        claim_id: 1,
        epoch: 'one',
        page: 0,
        skipped: -1,
        page_target: -1,
        expected_seq: 2 ** 31,
        cursor: { at: 1 },
        items: {},
        hash: '',
        done: 'perhaps',
      }).map(([name, value]): [string, RegExp] => [
        JSON.stringify({ ...whole, [name]: value }),
        /uuid|integer|boolean|with missing or invalid values: (page|skipped|page_target|cursor|items|hash)\./,
      ]),
      [JSON.stringify({ ...whole, items: [1] }), /objects/],
      [JSON.stringify({ ...whole, items: [{ key_version: 0 }] }), /"key"/],
      [JSON.stringify({ ...whole, items: [{ key: 'a' }] }), /"key_version"/],
      [JSON.stringify({ ...whole, items: [{ key: 'a\0', key_version: 0 }] }), /Unicode/],
    ]
    for (const [given, message] of cases)
      await assert.rejects(program.query(statement, [given]), { message }, String(given))

    assert.equal((await getTarget(store, claimed.target)).seq, 0)
    assert.deepEqual(await itemsOf(store), [])
    assert.equal(await program.save(store, nextCheckpoint(claimed)), 1)
  })

  test('P4 the commit is synchronous, and locks and idleness are limited, for this transaction alone', async () => {
    await using scene = await setUpOwnProgram()
    const { store, claimed, connect } = scene
    const names = ['synchronous_commit', 'lock_timeout', 'idle_in_transaction_session_timeout']
    const settings = async (program: OwnProgram): Promise<unknown[]> => {
      const values: unknown[] = []
      for (const name of names) values.push(await program.setting(name))
      return values
    }
    const cases: [string[], string[]][] = [
      [
        ['off', '0', '0'],
        ['on', '5s', '1min'],
      ],
      [
        ['off', '2min', '1h'],
        ['on', '5s', '1min'],
      ],
      [
        ['remote_apply', '750ms', '2s'],
        ['remote_apply', '750ms', '2s'],
      ],
    ]
    for (const [n, [session, inside]] of cases.entries()) {
      const program = await connect(names.map((name, at) => `-c ${name}=${session[at]}`).join(' '))
      await program.begin(store, nextCheckpoint({ ...claimed, seq: n, page: n }))
      assert.deepEqual(await settings(program), inside)
      await program.query('COMMIT')
      assert.deepEqual(await settings(program), session)
    }
  })

  test('transactions with the same items in any order wait for each other, in their counters not at all', async () => {
    await using scene = await setUpOwnProgram()
    const { db, store, run, worker, claimed, connect } = scene
    const claims = [claimed, ...(await claim(store, worker, 2))]
    const programs = await Promise.all(claims.map(() => connect()))
    const items = makeItems(0, 40)
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        claims.map(async (claim, n) => {
          const mixed = n % 2 ? items.toReversed() : items
          const page = nextCheckpoint({ ...claim, seq: round, page: round }, { items: mixed })
          await programs[n]!.begin(store, page)
          await programs[n]!.query(`${INSERT}; COMMIT`)
        }),
      )
    }

    // Each has items of its own: all are open at once.
    for (const [n, claim] of claims.entries())
      await programs[n]!.begin(
        store,
        nextCheckpoint({ ...claim, seq: 10, page: 10 }, { items: makeItems(100 * (n + 1), 2) }),
      )
    for (const program of programs) await program.query('COMMIT')

    const { counts } = (await store.run(run))!
    assert.deepEqual([counts.pages, counts.itemsNew, counts.itemsUnchanged], [33, 46, 40 * 29])
    await assertCountersConsistent(store, run)
    const slots = await db.raw(`SELECT FROM unstuck.run_counters WHERE writer LIKE 'tx/%'`)
    assert.equal(slots.length, claims.length)
  })

  test('a lock that another program holds is waited for no longer than the limit', async () => {
    await using scene = await setUpOwnProgram()
    const { store, worker, claimed, connect } = scene
    const [one, other] = [await connect(), await connect('-c lock_timeout=50ms')]
    const items = makeItems(0, 1)
    await one.begin(store, nextCheckpoint(claimed, { items }))
    const page = nextCheckpoint(await claimOne(store, worker), { items })

    await assert.rejects(other.begin(store, page), { code: '55P03' })
    await other.query('ROLLBACK')
    await one.query('COMMIT')
    await other.begin(store, page)
    await other.query('COMMIT')
  })

  test('a program that hangs in its transaction loses it, and the target can be recovered', async () => {
    await using scene = await setUpOwnProgram()
    const { store, worker, claimed, connect } = scene
    const program = await connect('-c idle_in_transaction_session_timeout=50ms')
    const ended = once(program.client, 'error')
    const page = nextCheckpoint(claimed)
    await program.begin(store, page)

    const [error] = (await ended) as [{ code: string }]
    assert.equal(error.code, '25P03')
    assert.equal(await store.isSaved(page), false)
    assert.deepEqual(await recoverWorker(store, worker), [true])
  })

  test('P1 P2 recovery leaves a target alone while its page is being saved, and is not held up', async () => {
    await using scene = await setUpOwnProgram()
    const { store, run, worker, claimed, program } = scene
    const page = nextCheckpoint(claimed, { items: makeItems(0, 2) })
    await program.begin(store, page)

    assert.deepEqual(await recoverWorker(store, worker), [false])
    await store.retireWorker(worker)
    await program.query(`${INSERT}; COMMIT`)
    assert.equal(await store.isSaved(page), true)

    assert.deepEqual(await recoverWorker(store, worker), [true])
    const fresh = await claimOne(store, await registerWorker(store), { isIdle: true })
    assert.deepEqual([fresh.target, fresh.seq, fresh.page], [claimed.target, 1, 1])
    await assert.rejects(program.save(store, nextCheckpoint({ ...claimed, seq: 1, page: 1 })), LOST)
    await assertCountersConsistent(store, run)
  })

  test('P1 a page that waits while its claim is taken is refused', async () => {
    await using scene = await setUpOwnProgram()
    const { db, store, worker, claimed, program, connect } = scene
    const holder = await connect()
    await holder.query(
      `BEGIN; UPDATE unstuck.target SET epoch = epoch + 1 WHERE id = '${claimed.target}'`,
    )
    const refused = assert.rejects(program.begin(store, nextCheckpoint(claimed)), LOST)
    await waitUntilBlocked(db)
    await holder.query('COMMIT')
    await refused
    await recoverWorker(store, worker)
  })

  test('behind a pooler in transaction mode its limits do not stay on the connection', async () => {
    await using scene = await setUpOwnProgram()
    const { db, store, claimed } = scene
    await using pooler = await startPooler(db.url, 1)
    await using program = await OwnProgram.connect(pooler.url)
    for (let n = 0; n < 8; n++) {
      await program.begin(store, nextCheckpoint({ ...claimed, seq: n, page: n }))
      await program.query(INSERT)
      await program.query('COMMIT')
    }
    assert.equal(await program.setting('lock_timeout'), '0')
    assert.equal((await getTarget(store, claimed.target)).seq, 8)
  })

  test('S25 without a grant only its owner may call it', async () => {
    await using db = await postgresEngine.fresh()
    const [row] = await db.raw(
      `SELECT has_function_privilege('public', 'unstuck.checkpoint(json)', 'EXECUTE') AS may_call`,
    )
    assert.equal(row!['may_call'], false)
  })

  test('the statements are those of a checkpoint of the store', async () => {
    await using db = await postgresEngine.fresh()
    const [row] = await db.raw(
      `SELECT prosrc FROM pg_proc WHERE oid = 'unstuck.checkpoint(json)'::regprocedure`,
    )
    const flat = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
    const body = flat(String(row!['prosrc']))
    for (const part of [SEEN_AGAIN, ADD_ON_CONFLICT])
      assert.ok(body.includes(flat(part)), 'a change of it needs a migration with the new function')
  })
})
