import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSettings } from '../../src/app/config.ts'
import { contextFor } from '../../src/app/open-context.ts'
import type { Settings } from '../../src/contracts/settings.ts'
import type { Store } from '../../src/core/store/store.ts'
import { ADOPTED_SECTION } from '../../src/features/adopted/config.ts'
import { withAdoptedTables } from '../../src/features/adopted/store-wrapper.ts'
import { DEFAULT_RULES } from '../../src/features/alerts/rule.ts'
import { AlertService } from '../../src/features/alerts/service.ts'
import { open } from '../../src/index.ts'
import type { Unstuck } from '../../src/interfaces/library/types.ts'
import { createApp, type App } from '../../src/interfaces/http/app.ts'
import { initialState } from '../../src/interfaces/top/state.ts'
import { takeSnapshot, type Snapshot, type View } from '../../src/interfaces/top/snapshot.ts'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { createUserTable, insertRows } from '../../src/testing/user-tables.ts'
import { Fixture, WIDE, type Situation } from './situation.ts'

export type Json = Record<string, any>
export type Report = { readonly code: number; readonly data: Json }

/** A folder with a config and a database that is in the situation, and every interface to it. */
export class Project {
  readonly #folder: string
  readonly #store: Store
  readonly #settings: Settings
  readonly #app: App
  readonly #end: () => Promise<void>
  readonly #reports = new Map<string, Promise<Report>>()

  static async create(engine: Engine, situation: Situation): Promise<Project> {
    const stack = new AsyncDisposableStack()
    const db = stack.use(await engine.fresh())
    const folder = stack.use(temporaryFolder()).path
    const { tables = {}, config, arrange } = situation
    for (const { table, rows } of Object.values(tables)) {
      await createUserTable(db.url, table)
      await insertRows(db.url, table, rows())
    }
    const adopted = Object.entries(tables).map(([name, { table, options = '' }]) => {
      const mapped = JSON.stringify(table.options[engine.name])
      return `${name}: { ...${mapped}, ${options} }`
    })
    const lines = [
      `db: '${db.url}'`,
      // Each command opens what it needs, which takes longer than what it reads.
      ...(engine.name === 'postgres' ? ['connections: 1'] : []),
      ...(adopted.length > 0 ? [`adopted: { ${adopted.join(', ')} }`] : []),
      ...(config === undefined ? [] : [config]),
    ]
    writeFileSync(join(folder, 'unstuck.config.mjs'), `export default { ${lines.join(', ')} }\n`)
    const settings = await loadSettings(folder)
    const own = await db.open()
    const store = await withAdoptedTables(own, settings.section(ADOPTED_SECTION), {
      address: db.url,
      log: () => {},
      policyOf: settings.policyOf,
    })
    const fixture = new Fixture(db, own, folder)
    stack.use(fixture.ends)
    await arrange(fixture)
    const project = new Project({ folder, store, settings, end: () => stack.disposeAsync() })
    await project.#raiseAlerts()
    await situation.afterAlerts?.(fixture)
    return project
  }

  private constructor(parts: {
    readonly folder: string
    readonly store: Store
    readonly settings: Settings
    readonly end: () => Promise<void>
  }) {
    this.#folder = parts.folder
    this.#store = parts.store
    this.#settings = parts.settings
    this.#end = parts.end
    this.#app = createApp({
      auth: {
        tokens: null,
        access: () => ({ name: 'the tests', role: 'admin' }),
        isPrivate: false,
        isKnownHost: null,
        trustProxy: false,
        readOnly: true,
        path: '/',
      },
      open: async () => parts.store,
      settings: async () => parts.settings,
      dataFolder: async () => parts.folder,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#app.close()
    await this.#end()
  }

  /** A command with `--json`, run once: commands that only read return the same in a situation. */
  cli(...args: string[]): Promise<Report> {
    const key = args.join(' ')
    const report = this.#reports.get(key) ?? this.#call(args)
    this.#reports.set(key, report)
    return report
  }

  async #call(args: readonly string[]): Promise<Report> {
    const { code, stdout, stderr } = await unstuck([...args, '--json'], {
      cwd: this.#folder,
      env: WIDE,
    })
    assert.ok(stdout !== '', `unstuck ${args.join(' ')}: ${stderr}`)
    return { code: code!, data: JSON.parse(stdout) as Json }
  }

  /** What a command prints, in lines that are not cut. */
  async text(...args: string[]): Promise<string> {
    return (await unstuck(args, { cwd: this.#folder, env: WIDE })).stdout
  }

  async http(path: string): Promise<Json> {
    const response = await this.#app.fetch(new Request(`http://unstuck.invalid${path}`))
    const body = (await response.json()) as Json
    assert.equal(response.status, 200, `${path}: ${JSON.stringify(body)}`)
    return body
  }

  top(view: View): Promise<Snapshot> {
    const operator = contextFor(this.#store, this.#settings, 'the tests')
    return takeSnapshot({ operator, settings: this.#settings }, { ...initialState(false), view })
  }

  /** A program that uses the library, in the folder of the config. */
  async library<T>(use: (unstuck: Unstuck) => Promise<T>): Promise<T> {
    const outer = process.cwd()
    process.chdir(this.#folder)
    try {
      await using opened = await open({ signals: false })
      return await use(opened)
    } finally {
      process.chdir(outer)
    }
  }

  /** What a process with the rules of the defaults raises now. */
  async #raiseAlerts(): Promise<void> {
    const service = new AlertService({
      open: async () => this.#store,
      policyOf: this.#settings.policyOf,
      rules: DEFAULT_RULES,
      channels: [],
      url: null,
      worker: () => null,
      log: () => {},
    })
    await service.check(true)
    await service.stop()
  }
}
