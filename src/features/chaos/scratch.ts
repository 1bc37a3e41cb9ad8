import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId, shortId } from '../../core/model/id.ts'
import { openStore } from '../../core/store/open.ts'
import type { Store } from '../../core/store/store.ts'

export type Phase = 'reference' | 'kills'

/** The database and folder of one phase, both new. */
export type PhaseContext = {
  readonly phase: Phase
  /** The address of the database with its secrets, for the command's environment. */
  readonly address: string
  readonly store: Store
  /** For the command's own files: its UNSTUCK_CHAOS_DIR. */
  readonly outputDir: string
  /** Receives the output of the command. */
  readonly logPath: string
}

/** What is created for the trial: one folder, and on a server two databases. */
export type Scratch = {
  readonly folder: string
  /** On a server. */
  readonly databases: readonly string[]
  open(phase: Phase): Promise<PhaseContext>
  /** Closes the databases. */
  close(): Promise<void>
  removeFolder(): void
  dropDatabases(): Promise<void>
}

const CONNECTIONS = 3

/** `server`: where the databases are created; null: SQLite files in the folder. */
export function makeScratch(server: string | null): Scratch {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-chaos-'))
  const id = shortId(newId())
  const stores: Store[] = []
  const drops = new Map<string, () => Promise<void>>()

  const addressOf = async (phase: Phase): Promise<string> => {
    if (server === null) return `sqlite:${join(folder, phase, 'unstuck.db')}`
    const { createScratch } = await import('./store/postgres.ts')
    const database = await createScratch(server, `unstuck_chaos_${id}_${phase}`)
    drops.set(database.name, database.drop)
    return database.address
  }

  return {
    folder,
    get databases() {
      return [...drops.keys()]
    },
    async open(phase) {
      const outputDir = join(folder, phase, 'files')
      mkdirSync(outputDir, { recursive: true, mode: 0o700 })
      const address = await addressOf(phase)
      const store = await openStore(address, { connections: CONNECTIONS })
      stores.push(store)
      return { phase, address, store, outputDir, logPath: join(folder, phase, 'command.log') }
    },
    async close() {
      await Promise.all(stores.splice(0).map((store) => store.close()))
    },
    removeFolder: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }),
    async dropDatabases() {
      for (const [name, drop] of drops) {
        await drop()
        drops.delete(name)
      }
    },
  }
}
