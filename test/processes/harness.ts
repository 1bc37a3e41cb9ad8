import { spawn, type ChildProcess } from 'node:child_process'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { PolicyOptions } from '../../src/lib/validate/policy-options.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Target } from '../../src/core/model/target.ts'
import type { AuditEntry, Store } from '../../src/core/store/store.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { Engine, TestDatabase } from '../../src/testing/test-database.ts'
import type { Mark } from './child-helpers.ts'

/** Both stores, where `npm run unit` has started a PostgreSQL server. */
export const ENGINES: readonly Engine[] = process.env['UNSTUCK_TEST_PG']
  ? [sqliteEngine, postgresEngine]
  : [sqliteEngine]

/** One of them in `npm test`, where the laws of the store and other stories hold the second to the same; both in the long proof. */
export const SOME_ENGINES: readonly Engine[] = isLong ? ENGINES : ENGINES.slice(0, 1)

export const CLI = fileURLToPath(new URL('../../bin/unstuck.js', import.meta.url))
const INDEX = new URL('../../src/index.ts', import.meta.url).href
const CHILD_HELPERS = new URL('./child-helpers.ts', import.meta.url).href
/** On a busy machine everything takes its time: a limit only ends a test that would never end. */
const TIMEOUT_MS = 150_000

/** A short lease, so that silence is noticed within the time of a test. */
export const SHORT_LEASE = `{ heartbeat: '400ms', lease: '2s' }`

/** Resolves with the first answer that is neither false, null nor undefined. */
export async function waitFor<T>(
  description: string | (() => string),
  poll: () => T | Promise<T>,
  timeoutMs = TIMEOUT_MS,
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + timeoutMs
  for (;;) {
    const seen = await poll()
    if (seen !== false && seen !== null && seen !== undefined) return seen
    if (performance.now() > giveUpAt) {
      throw new Error(
        `Never seen: ${typeof description === 'string' ? description : description()}`,
      )
    }
    await sleep(15)
  }
}

/** A database, a folder for crawl modules, and the real processes a test starts on them. */
export class ProcessTestContext {
  readonly folder: string
  readonly engine: Engine
  readonly #database: TestDatabase | null
  readonly #programs: Program[] = []
  #store: Promise<Store> | null = null

  constructor(engine: Engine, database: TestDatabase | null) {
    this.engine = engine
    this.#database = database
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'unstuck-stage-')))
  }

  /** With a database in which illegal moves are refused, and a ledger without a key. */
  static async create(engine: Engine): Promise<ProcessTestContext> {
    const database = await engine.fresh()
    await database.raw('CREATE TABLE ledger (target_key text NOT NULL, page integer NOT NULL)')
    return new ProcessTestContext(engine, database)
  }

  /** Without a database: the test brings its own, or a broken one. */
  static createWithoutDatabase(engine: Engine = sqliteEngine): ProcessTestContext {
    return new ProcessTestContext(engine, null)
  }

  get database(): TestDatabase {
    return this.#database!
  }

  /** A module that may use everything in `props.ts`. Answers its path. */
  module(name: string, text: string): string {
    const path = join(this.folder, name)
    const head =
      `import { AlreadyRunningError, LeaseLostError, StoppingError, defineCrawl, exitCodeOf, open } from '${INDEX}'\n` +
      `import { block, blockUntilOpened, ledger, mark, marked, opened, sleep } from '${CHILD_HELPERS}'\n` +
      'void [AlreadyRunningError, LeaseLostError, StoppingError, defineCrawl, open, block, blockUntilOpened, ledger, mark, marked, opened, sleep]\n'
    writeFileSync(path, head + text)
    return path
  }

  /** A crawl module with these options. */
  crawl(options: string): string {
    return this.module('crawl.ts', `export default defineCrawl({ source: 'stage', ${options} })\n`)
  }

  /** `unstuck …` as a process of its own, in a process group of its own. */
  unstuck(...args: string[]): Program {
    return this.start([CLI, ...args])
  }

  /** The same with so many megabytes for its objects. */
  unstuckWithHeap(megabytes: number, ...args: string[]): Program {
    return this.start([`--max-old-space-size=${megabytes}`, CLI, ...args])
  }

  /** The same, started by a program that keeps a channel to it, as process managers do. */
  unstuckWithIpc(...args: string[]): Program {
    return this.start([CLI, ...args], { ipc: true })
  }

  /** `node …`; `under`: a program with its arguments that starts it in its own place. */
  start(
    args: readonly string[],
    options: { ipc?: boolean; env?: NodeJS.ProcessEnv; under?: readonly string[] } = {},
  ): Program {
    const [file = '', ...words] = [...(options.under ?? []), process.execPath, ...args]
    const child = spawn(file, words, {
      cwd: this.folder,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', ...(options.ipc ? (['ipc'] as const) : [])],
      env: {
        ...process.env,
        NODE_TEST_CONTEXT: '',
        NO_COLOR: '1',
        STAGE: this.folder,
        STAGE_ENGINE: this.engine.name,
        ...(this.#database && { UNSTUCK_DB: this.#database.url }),
        ...options.env,
      },
    })
    const program = new Program(child)
    this.#programs.push(program)
    return program
  }

  /**
   * Stops a program with SIGSTOP, at a moment when it is not writing: on SQLite a process that is stopped in the
   * middle of a transaction blocks every writer until it goes on, and nothing can be done about it.
   */
  async freeze({ pid }: { readonly pid: number }): Promise<void> {
    await waitFor('a moment without a write', async () => {
      kill(pid, 'SIGSTOP')
      if (this.engine.name !== 'sqlite' || canWrite(this.database.url)) return true
      kill(pid, 'SIGCONT')
      await sleep(20)
      return null
    })
  }

  /** A config that says this about sources. */
  writeConfig(policies: Record<string, PolicyOptions>): void {
    const config = `export default { policies: ${JSON.stringify(policies)} }\n`
    writeFileSync(join(this.folder, 'unstuck.config.ts'), config)
  }

  /** Lets through who waits with `opened(name)`. */
  openGate(name: string): void {
    writeFileSync(join(this.folder, `${name}.gate`), '')
  }

  /** What processes said with `mark()`, in the order it was said. */
  marks(what?: string): Mark[] {
    const all = readLines(join(this.folder, 'marks')).map((line) => JSON.parse(line) as Mark)
    return what === undefined ? all : all.filter((mark) => mark.what === what)
  }

  /** Waits until that many marks of the kind are there. */
  async waitForMarks(what: string, count = 1): Promise<Mark[]> {
    return waitFor(`${count} × ${what}`, () => {
      const marks = this.marks(what)
      return marks.length >= count ? marks : null
    })
  }

  store(): Promise<Store> {
    return (this.#store ??= this.database.open())
  }

  /** The newest run. */
  async run(source = 'stage'): Promise<Run> {
    const { items } = await (await this.store()).runs({ source, limit: 1 })
    if (!items[0]) throw new Error(`There is no run of ${source}`)
    return items[0]
  }

  /** Targets of the newest run, by key. */
  async targets(): Promise<Map<string, Target>> {
    const { items } = await (await this.store()).targets((await this.run()).id, { limit: 10_000 })
    return new Map(items.map((target) => [target.key, target]))
  }

  async target(key: string): Promise<Target> {
    return (await this.targets()).get(key)!
  }

  /** Verdicts that were applied. */
  async verdicts(): Promise<AuditEntry[]> {
    return (await this.store()).audit({ limit: 1_000 })
  }

  /** Rows of the ledger, sorted, as `key/page`. */
  async ledger(): Promise<string[]> {
    const rows = await this.database.raw('SELECT target_key, page FROM ledger')
    return rows.map((row) => `${String(row['target_key'])}/${String(row['page'])}`).sort()
  }

  /** Every process that was started here, or by one that was, and still lives. */
  processes(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && hasEnvironmentEntry(name, `STAGE=${this.folder}`))
      .map(Number)
  }

  /** Nothing is left behind, not even for a moment longer than it takes the kernel to clear it away. */
  async assertNoProcessesLeft(): Promise<void> {
    await waitFor('no process left behind', () => this.processes().length === 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.processes()) kill(pid, 'SIGKILL')
    await Promise.all(this.#programs.map((program) => program.exited))
    if (this.#database) await this.#database[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A process under the eyes of a test. */
export class Program {
  readonly child: ChildProcess
  readonly pid: number
  /** Exit code, or the name of the signal that ended it. Resolves when all of its output is read. */
  readonly exited: Promise<number | string>
  #output = ''

  constructor(child: ChildProcess) {
    this.child = child
    this.pid = child.pid!
    child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        void this.#readToEnd().then(() => resolve(code ?? signal ?? 'unknown'))
      })
    })
  }

  /**
   * Its exit can be noticed before its last output, which is in the pipe by then. A process that it left behind may
   * keep the pipe open: nothing waits for the end of the stream.
   */
  async #readToEnd(): Promise<void> {
    for (let length = -1; this.#output.length !== length;) {
      length = this.#output.length
      // Of two turns of the event loop at least one begins after the exit and reads what is there.
      await nextTurn()
      await nextTurn()
    }
  }

  /** What it has written so far, to stdout and stderr. */
  get output(): string {
    return this.#output
  }

  signal(signal: NodeJS.Signals): void {
    kill(this.pid, signal)
  }

  /** How Ctrl-C reaches a program: its whole process group hears it. */
  signalGroup(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal)
  }

  /** Resolves as soon as the text is in the output, with what a regular expression matches of it. */
  async waitForOutput(text: string | RegExp): Promise<string> {
    const find = (): string | null => {
      if (typeof text === 'string') return this.#output.includes(text) ? text : null
      return text.exec(this.#output)?.[0] ?? null
    }
    const description = (): string => `${text} in:\n${this.#output}`
    return waitFor(description, find)
  }

  /** Its exit code, with all of its output read. */
  async waitForExit(): Promise<number | string> {
    const late = sleep(TIMEOUT_MS, 'late' as const, { ref: false })
    const code = await Promise.race([this.exited, late])
    if (code === 'late') throw new Error(`It did not end. It said:\n${this.#output}`)
    return code
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null
  }
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Finds processes by a variable of their environment, which survives a change of parent. */
function hasEnvironmentEntry(pid: string, entry: string): boolean {
  try {
    if (/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))) return false
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(entry)
  } catch {
    return false
  }
}

function canWrite(url: string): boolean {
  using db = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 2_000 })
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch {
    return false
  }
}

function readLines(path: string): string[] {
  try {
    const text = readFileSync(path, 'utf8')
    return text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .slice(0, -1)
  } catch {
    return []
  }
}
