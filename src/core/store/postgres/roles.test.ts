import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { StoreReadOnlyError, UnusableStoreError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import {
  itemsOf,
  claimOne,
  registerWorker,
  nextCheckpoint,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { callEveryStoreMethod, callFullScanMethods } from '../../../testing/every-store-method.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { openStore, type OpenOptions } from '../open.ts'
import type { Store } from '../store.ts'
import { PAGE_TRANSACTIONS } from '../../../features/commands/store/page-transactions.ts'
import { INSPECTION_STORE } from '../../../features/inspection/store/store.ts'

const ROLES = readFileSync(
  new URL('../../../../docs/reference/postgres-roles.sql', import.meta.url),
  'utf8',
)
const GROUPS = ['unstuck_migrate', 'unstuck_worker', 'unstuck_viewer', 'unstuck_program'] as const
type Group = (typeof GROUPS)[number]

const ending = newId().slice(-8)
const login = (group: Group): string => `${group}_${ending}`

/** A database with the roles of the docs, whose stores are opened by a login of one of them. */
async function withRoles(group: Group, options: OpenOptions = {}): Promise<TestDatabase> {
  const db = await postgresEngine.fresh()
  await db.raw(ROLES)
  const stores: Store[] = []
  return {
    ...db,
    open: async () => {
      const store = await openStore(loginUrl(db.url, group), { connections: 4, ...options })
      stores.push(store)
      return store
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(stores.map((store) => store.close()))
      await db[Symbol.asyncDispose]()
    },
  }
}

function loginUrl(url: string, group: Group): string {
  const theirs = new URL(url)
  theirs.username = login(group)
  theirs.password = 'x'
  return theirs.href
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

/** The names of the methods that exist, and of those that were called. */
type Calls = { readonly known: Set<string>; readonly made: Set<string> }

/** Returns the object with methods that record their calls. */
function recordCalls<T extends object>(object: T, calls: Calls): T {
  const methods = Object.entries(object).filter(([, value]) => typeof value === 'function')
  const recorded = methods.map(([name, method]: [string, (...args: unknown[]) => unknown]) => {
    calls.known.add(name)
    const call = (...args: unknown[]): unknown => {
      calls.made.add(name)
      return method(...args)
    }
    return [name, call] as const
  })
  return { ...object, ...Object.fromEntries(recorded) }
}

const server = (): string => process.env['UNSTUCK_TEST_PG']!
const DENIED = { code: '42501' }

before(async () => {
  await using db = await postgresEngine.fresh()
  await db.raw(ROLES)
  for (const group of GROUPS) {
    await query(server(), `CREATE ROLE ${login(group)} LOGIN PASSWORD 'x' IN ROLE ${group}`)
    // Whatever the path is, it must not matter.
    await query(server(), `ALTER ROLE ${login(group)} SET search_path = ''`)
  }
})
after(() => query(server(), `DROP ROLE ${[...GROUPS.map(login), ...GROUPS].join(', ')}`))

test('S25 a login with only the rights of unstuck_worker can do everything that workers and operators do', async () => {
  await using db = await withRoles('unstuck_worker')
  const calls: Calls = { known: new Set(), made: new Set() }
  const opened = await db.open()
  const store: Store = {
    ...recordCalls(opened, calls),
    extend: async (extension) => recordCalls(await opened.extend(extension), calls),
  }

  const presence = await store.acquirePresence(newId())
  await callEveryStoreMethod(store)
  await callFullScanMethods(store)
  await presence.release()
  await enqueueCrawl(store, 1, { source: 'last' })
  const claimed = await claimOne(store, await registerWorker(store), { source: 'last' })
  const [outcome] = await store.checkpoint([nextCheckpoint(claimed)], (tx) => tx.query('SELECT 1'))
  assert.equal(outcome?.ok, true)

  assert.deepEqual([...calls.known.difference(calls.made)].sort(), ['close', 'extend'])
})

test('S24 a worker can neither change nor delete audit entries', async () => {
  await using db = await withRoles('unstuck_worker')
  const url = loginUrl(db.url, 'unstuck_worker')
  for (const table of ['unstuck.audit', 'unstuck.operation']) {
    const column = table === 'unstuck.audit' ? 'because' : 'result'
    await assert.rejects(query(url, `UPDATE ${table} SET ${column} = ''`), DENIED)
    await assert.rejects(query(url, `DELETE FROM ${table}`), DENIED)
    await assert.rejects(query(url, `TRUNCATE ${table}`), DENIED)
    await assert.rejects(query(url, `DROP TABLE ${table}`), DENIED)
    await assert.rejects(query(url, `ALTER TABLE ${table} ADD COLUMN x int`), DENIED)
  }
})

test('S25 a worker has no rights on the schema and on the version of it', async () => {
  await using db = await withRoles('unstuck_worker')
  const url = loginUrl(db.url, 'unstuck_worker')
  for (const text of [
    'CREATE TABLE unstuck.mine ()',
    'UPDATE unstuck.migration SET min_program_version = 99',
    'DELETE FROM unstuck.migration',
    'DROP SCHEMA unstuck CASCADE',
    'DELETE FROM unstuck.source_lock',
    'DELETE FROM unstuck.execution',
  ]) {
    await assert.rejects(query(url, text), DENIED, text)
  }
})

test('S25 a viewer reads everything and writes nothing', async () => {
  await using db = await withRoles('unstuck_viewer', { readOnly: true })
  const owner = await openStore(db.url)
  const run = await enqueueCrawl(owner, 3)
  await savePage(owner, await claimOne(owner, await registerWorker(owner)), {
    items: makeItems(0, 2),
  })
  await owner.close()
  const store = await db.open()

  assert.equal((await store.run(run))?.counts.pages, 1)
  assert.equal((await store.runTotals()).running, 1)
  assert.equal((await store.targets(run, { limit: 5 })).items.length, 3)
  assert.equal((await itemsOf(store)).length, 2)
  assert.equal((await store.observations()).length, 1)
  assert.equal((await store.liveRuns()).length, 1)
  await (await store.extend(INSPECTION_STORE)).inspect()
  await assert.rejects(enqueueCrawl(store, 1, { source: 'other' }), StoreReadOnlyError)
  await assert.rejects(store.takeSample(), StoreReadOnlyError)
  const tables = await db.raw(`SELECT tablename FROM pg_tables WHERE schemaname = 'unstuck'`)
  assert.ok(tables.length >= 12)
  for (const { tablename } of tables) {
    const url = loginUrl(db.url, 'unstuck_viewer')
    await assert.rejects(query(url, `DELETE FROM unstuck.${String(tablename)}`), DENIED)
  }
  const views = await db.raw(
    `SELECT viewname, viewowner FROM pg_views WHERE schemaname = 'unstuck'`,
  )
  assert.equal(views.length, 5)
  for (const { viewname, viewowner } of views) {
    assert.equal(viewowner, 'unstuck_migrate')
    for (const group of ['unstuck_viewer', 'unstuck_worker'] as const)
      await query(loginUrl(db.url, group), `SELECT * FROM unstuck.${String(viewname)}`)
  }
})

test('a viewer gets an error naming the role that has to migrate; opened without read-only it is rejected', async () => {
  await using db = await withRoles('unstuck_viewer')
  await assert.rejects(db.open(), StoreReadOnlyError)
  await db.raw(`DELETE FROM unstuck.migration`)
  const theirs = loginUrl(db.url, 'unstuck_viewer')
  await assert.rejects(openStore(theirs, { readOnly: true }), (error) => {
    assert.ok(error instanceof UnusableStoreError)
    assert.match(error.message, /unstuck migrate/)
    return true
  })
})

test('S25 a program saves a page of a claim that it knows, whatever its settings, and can do nothing else', async () => {
  await using db = await withRoles('unstuck_program')
  const owner = await openStore(db.url)
  await using _ = { [Symbol.asyncDispose]: () => owner.close() }
  const { checkpointCall } = await owner.extend(PAGE_TRANSACTIONS)
  const run = await enqueueCrawl(owner, 2)
  const claimed = await claimOne(owner, await registerWorker(owner))
  await enqueueCrawl(owner, 1, { source: 'other' })
  const { statement, parameter } = checkpointCall(
    nextCheckpoint(claimed, { items: makeItems(0, 2) }),
  )
  const page = JSON.parse(parameter) as Record<string, unknown>
  const client = new Client({ connectionString: loginUrl(db.url, 'unstuck_program') })
  await using __ = { [Symbol.asyncDispose]: () => client.end() }
  await client.connect()
  const denied = (text: string): Promise<void> => assert.rejects(client.query(text), DENIED, text)

  const tables = await db.raw(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'unstuck'`,
  )
  for (const { name } of tables) {
    for (const text of ['SELECT FROM', 'DELETE FROM', 'TRUNCATE'])
      await denied(`${text} unstuck.${String(name)}`)
  }
  await denied(`UPDATE unstuck.target SET page = 9`)
  await denied('CREATE TABLE unstuck.mine ()')
  await denied('ALTER FUNCTION unstuck.checkpoint(json) SECURITY INVOKER')
  await denied('DROP FUNCTION unstuck.checkpoint(json)')
  const others = { ...page, claim_id: newId() }
  await assert.rejects(client.query(statement, [JSON.stringify(others)]), { code: 'UN001' })

  // Its own functions and tables are not taken for those of the server and of Unstuck.
  await db.raw(`CREATE SCHEMA mine AUTHORIZATION ${login('unstuck_program')}`)
  await client.query(/* sql */ `
    GRANT USAGE ON SCHEMA mine TO PUBLIC;
    CREATE TEMP TABLE item (LIKE pg_class);
    CREATE FUNCTION mine.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RAISE ''taken''; END';
    SET search_path = mine, pg_temp, pg_catalog;
  `)
  // Source, run and counters are those of the target, whatever it sends.
  const sent = { ...page, source: 'other', run_id: newId(), group_name: 'g', writer: 'w' }
  const { rows } = await client.query(statement, [JSON.stringify(sent)])

  assert.deepEqual(rows, [{ checkpoint: 1 }])
  assert.deepEqual([(await itemsOf(owner)).length, await itemsOf(owner, 'other')], [2, []])
  assert.equal((await owner.run(run))!.counts.pages, 1)
  const writers = await db.raw(`SELECT DISTINCT writer FROM unstuck.run_counters WHERE pages > 0`)
  assert.match(String(writers[0]!['writer']), /^tx\/\d+$/)
})

test('S25 without unstuck_program a login cannot save pages', async () => {
  await using db = await withRoles('unstuck_viewer')
  const text = `SELECT unstuck.checkpoint('{}')`
  await assert.rejects(query(loginUrl(db.url, 'unstuck_viewer'), text), DENIED)
  await assert.rejects(query(loginUrl(db.url, 'unstuck_worker'), text), { code: '22023' })
})

test('S25 unstuck_migrate can make the schema, and the file can be run again', async () => {
  await using db = await withRoles('unstuck_migrate')
  await db.raw('DROP SCHEMA unstuck CASCADE')

  await db.open()
  await db.raw(ROLES)

  const store = await openStore(loginUrl(db.url, 'unstuck_worker'))
  await enqueueCrawl(store, 1)
  await store.takeSample()
  await store.close()
})
