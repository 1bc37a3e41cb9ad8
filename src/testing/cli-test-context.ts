import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { WorkerId } from '../core/model/id.ts'
import { thisProcess } from '../core/host/identity.ts'
import type { NewWorker, Store } from '../core/store/store.ts'
import { registerWorker } from './fixtures.ts'
import { sqliteEngine } from './sqlite-engine.ts'
import type { TestDatabase } from './test-database.ts'
import { cliCommand, unstuck, type CliResult } from './unstuck-cli.ts'

export const HOUR_MS = 3_600_000

/** Text as it comes from web pages and other people's keyboards. */
export const HOSTILE_TEXT = 'Ac\x1b]52;c;aGk=\x07\u009b2J\u202Eevil\r\nline'
/** What no terminal may get. */
export const UNSAFE_CHARACTERS = /(?!\n)\p{Cc}|\u202e/u

/** A person at a command line, with a database of their own. */
export type CliTestContext = AsyncDisposable & {
  readonly database: TestDatabase
  readonly store: Store
  readonly cwd: string
  /** A worker in this process that will not fall silent while a test lasts. */
  registerLiveWorker(source: string): Promise<WorkerId>
  /** A worker whose process is proven gone. */
  registerDeadWorker(source: string): Promise<WorkerId>
  /** A worker on another host: nothing is known of it but its beats. */
  registerRemoteWorker(source: string): Promise<WorkerId>
  /** Calls the command line, piped, and wants this exit code. Without columns no line is wrapped. */
  cli(args: readonly string[], code?: number, columns?: number): Promise<CliResult>
  /** The same with `--json`: stdout is one document, and stderr is empty. */
  json(args: readonly string[], code?: number): Promise<any>
  /** Calls it on a terminal. Each answer is typed when its question is on the screen. */
  runInteractively(
    args: readonly string[],
    ...answers: [question: string, answer: Answer][]
  ): Promise<TerminalResult>
  /** All that is in the database. */
  dump(): Promise<string>
}

/** A function is called when the question is there, before it is answered. */
type Answer = string | (() => Promise<string>)

export type TerminalResult = { readonly code: number | null; readonly text: string }

export async function createCliTestContext(): Promise<CliTestContext> {
  const database = await sqliteEngine.fresh()
  const store = await database.open()
  const cwd = dirname(database.url.slice('sqlite:'.length))
  const me = thisProcess()
  const worker = (source: string, more: Partial<NewWorker>): Promise<WorkerId> =>
    registerWorker(store, { source, leaseMs: 600_000, ...more })
  const call: CliTestContext['cli'] = async (args, code = 0, columns) => {
    const env = { COLUMNS: String(columns ?? '') }
    const said = await unstuck([...args, '--db', database.url], { cwd, env })
    assert.equal(said.code, code, `${args.join(' ')}: ${said.stdout}${said.stderr}`)
    return said
  }
  return {
    database,
    store,
    cwd,
    cli: call,
    registerLiveWorker: (source) => worker(source, {}),
    registerDeadWorker: (source) =>
      worker(source, { process: { ...me, pid: 2 ** 22 - 7, startTicks: 1 } }),
    registerRemoteWorker: (source) =>
      worker(source, {
        process: { ...me, host: 'far', bootId: 'x' },
        // It beats fast, so that a newcomer need not listen for long.
        heartbeatMs: 50,
        leaseMs: 15_000,
      }),
    async json(args, code) {
      const { stdout, stderr } = await call([...args, '--json'], code)
      assert.equal(stderr, '')
      return JSON.parse(stdout)
    },
    runInteractively: (args, ...answers) =>
      runInTerminal([...args, '--db', database.url], cwd, answers),
    async dump() {
      const tables = await database.raw(
        `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1`,
      )
      const all: Record<string, unknown> = {}
      for (const { name } of tables) {
        all[name as string] = await database.raw(`SELECT * FROM ${String(name)} ORDER BY 1, 2`)
      }
      return JSON.stringify(all, null, 1)
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** Why no terminal can be had here; false where one can. */
export const noTerminal: string | false = /util-linux/.test(
  spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '',
)
  ? false
  : 'there is no `script` of util-linux, which makes a terminal'

/** Runs the real command line on a terminal of its own. */
function runInTerminal(
  args: readonly string[],
  cwd: string,
  answers: readonly [string, Answer][],
): Promise<TerminalResult> {
  const { command, env } = cliCommand([...args, '--color', 'never'])
  const line = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const child = spawn('script', ['-qec', `stty cols 80; exec ${line}`, '/dev/null'], { cwd, env })
  const waiting = [...answers]
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more
    const [question, answer] = waiting[0] ?? []
    if (question === undefined || !text.includes(question)) return
    waiting.shift()
    void Promise.resolve(typeof answer === 'function' ? answer() : answer!).then((line) =>
      child.stdin.write(line),
    )
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code) => {
      resolve({ code, text: stripVTControlCharacters(text).replaceAll('\r', '') })
    })
  })
}
