import type { Socket } from 'node:net'
import { Client } from 'pg'
import type { Checkpoint } from '../core/model/checkpoint.ts'
import type { ClaimedTarget } from '../core/model/claim.ts'
import type { Store } from '../core/store/store.ts'
import {
  PAGE_TRANSACTIONS,
  type PageTransactions,
} from '../features/commands/store/page-transactions.ts'
import { waitUntil } from './alert-test-service.ts'
import { claimOne, enqueueCrawl, registerWorker } from './fixtures.ts'
import { postgresEngine } from './postgres-engine.ts'
import { openExtended, type TestDatabase } from './test-database.ts'

/** A connection of the user's own program. */
export class OwnProgram implements AsyncDisposable {
  readonly client: Client

  constructor(url: string, settings = '') {
    this.client = new Client({ connectionString: url, options: settings })
    this.client.on('error', () => {})
  }

  static async connect(url: string, settings?: string): Promise<OwnProgram> {
    const program = new OwnProgram(url, settings)
    await program.client.connect()
    return program
  }

  async query(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return (await this.client.query<Record<string, unknown>>(text, values)).rows
  }

  /** Saves the page with the first statement of a transaction, and leaves it open. */
  async begin(store: PageTransactions, page: Checkpoint): Promise<number> {
    await this.query('BEGIN')
    return this.save(store, page)
  }

  async save(store: PageTransactions, page: Checkpoint): Promise<number> {
    const { statement, parameter } = store.checkpointCall(page)
    const [row] = await this.query(statement, [parameter])
    return Number(row!['checkpoint'])
  }

  async setting(name: string): Promise<unknown> {
    return (await this.query(`SELECT current_setting('${name}') AS value`))[0]!['value']
  }

  /** Ends the connection as a crash of the program or the network does: what was written before is still sent. */
  disconnect(): void {
    ;(this.client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.end().catch(() => {})
  }
}

export type OwnProgramScene = AsyncDisposable & {
  readonly db: TestDatabase
  readonly store: Store & PageTransactions
  readonly run: string
  readonly worker: string
  readonly claimed: ClaimedTarget
  readonly program: OwnProgram
  connect(settings?: string): Promise<OwnProgram>
  ledger(): Promise<number>
}

/** A run of three targets, one of them claimed, and a program with a table of its own. */
export async function setUpOwnProgram(): Promise<OwnProgramScene> {
  const stack = new AsyncDisposableStack()
  const db = stack.use(await postgresEngine.fresh())
  await db.raw('CREATE TABLE ledger (page int)')
  const store = await openExtended(db, PAGE_TRANSACTIONS)
  const run = await enqueueCrawl(store, 3)
  const worker = await registerWorker(store)
  const claimed = await claimOne(store, worker)
  const connect = async (settings?: string): Promise<OwnProgram> =>
    stack.use(await OwnProgram.connect(db.url, settings))
  const ledger = async (): Promise<number> => (await db.raw('SELECT FROM ledger')).length
  const program = await connect()
  const dispose = (): Promise<void> => stack.disposeAsync()
  return {
    db,
    store,
    run,
    worker,
    claimed,
    program,
    connect,
    ledger,
    [Symbol.asyncDispose]: dispose,
  }
}

/** Resolves when so many statements in this database wait for a lock. */
export async function waitUntilBlocked(db: TestDatabase, count = 1): Promise<void> {
  const blocked = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
  await waitUntil(async () => (await db.raw(blocked)).length === count)
}
