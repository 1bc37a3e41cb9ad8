import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AdoptedOptions } from '../features/adopted/mapping.ts'
import { temporaryFolder } from './sqlite-engine.ts'
import type { Engine } from './test-database.ts'
import { unstuck, type CliResult } from './unstuck-cli.ts'
import { runUserSql } from './user-tables.ts'

/** A project with tables of its own in an engine's database, and a config that maps them. */
export type AdoptedProject = AsyncDisposable & {
  readonly folder: string
  readonly url: string
  /** A statement of the user's own program. */
  sql(text: string): Promise<Record<string, unknown>[]>
  cli(...args: string[]): Promise<CliResult>
  /** The same with `--json`, parsed. */
  json(...args: string[]): Promise<any>
}

/** `adopted`: data alone, without functions. `config`: further lines of the config. */
export async function createAdoptedProject(
  engine: Engine,
  ddl: string,
  adopted: Readonly<Record<string, AdoptedOptions>>,
  config = '',
): Promise<AdoptedProject> {
  const database = await engine.empty()
  const folder = temporaryFolder()
  await runUserSql(database.url, ddl)
  const text = `export default { db: ${JSON.stringify(database.url)}, adopted: ${JSON.stringify(adopted)}, ${config} }\n`
  writeFileSync(join(folder.path, 'unstuck.config.ts'), text)
  const cli: AdoptedProject['cli'] = (...args) => unstuck(args, { cwd: folder.path })
  return {
    folder: folder.path,
    url: database.url,
    sql: (statement) => runUserSql(database.url, statement),
    cli,
    async json(...args) {
      const { stdout, stderr } = await cli(...args, '--json')
      return JSON.parse(stdout === '' ? stderr : stdout)
    },
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}
