import { dirname, isAbsolute, relative, sep } from 'node:path'
import process from 'node:process'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { absoluteAddress, DEFAULT_ADDRESS } from '../../../lib/files/config-file.ts'
import { splitTableName } from '../identifiers.ts'
import type { AdoptedOptions, AdoptedStatuses, Mapping, StatusValue } from '../mapping.ts'
import type { Paths } from './propose.ts'

/** The config that exists or would be written, and the code for its databases. */
export type ConfigTarget = {
  readonly path: string
  readonly exists: boolean
  /** Unstuck's own database according to that config. */
  readonly ownAddress: string
  /** The same as code, for a new config. */
  readonly ownDbCode: string
  /** The database of the tables as code; null: it is Unstuck's own. */
  readonly tablesDbCode: string | null
  /** The environment variable that the config reads, and whether it has this address now; null: it reads none. */
  readonly variable: { readonly name: string; readonly isSet: boolean } | null
}

type ConfigFile = {
  readonly path: string
  readonly exists: boolean
  /** The database named in the existing config. */
  readonly db: string | undefined
  readonly isReplaced: boolean
}

const DEFAULT_VARIABLE = 'DATABASE_URL'

/**
 * On PostgreSQL the tables can be next to Unstuck's own, which have a schema of their own. On SQLite Unstuck gets a file
 * of its own, so that the user's file stays as it is. An address with a password is not written: the config reads it from
 * the environment.
 */
export function describeConfig(
  address: string,
  { path, exists, db, isReplaced }: ConfigFile,
  env: NodeJS.ProcessEnv = process.env,
): ConfigTarget {
  const folder = dirname(path)
  const isServer = !address.startsWith('sqlite:')
  const newAddress = isServer ? address : DEFAULT_ADDRESS
  const isKept = exists && !isReplaced
  const ownAddress = absoluteAddress(isKept ? (db ?? DEFAULT_ADDRESS) : newAddress, folder)
  const found = isServer ? variableOf(address, env) : null
  const name = found ?? DEFAULT_VARIABLE
  const code = isServer
    ? `process.env[${literal(name)}]`
    : literal(`sqlite:${relativePath(folder, address.slice('sqlite:'.length))}`)
  const isNamed = isServer && !(isKept && ownAddress === address)
  return {
    path,
    exists,
    ownAddress,
    ownDbCode: isServer ? code : literal(DEFAULT_ADDRESS),
    tablesDbCode: ownAddress === address ? null : code,
    variable: isNamed ? { name, isSet: found !== null } : null,
  }
}

function relativePath(folder: string, file: string): string {
  const path = relative(folder, file)
  return isAbsolute(path) ? path : path.replaceAll(sep, '/')
}

/** The most usual of the variables that have this address. */
function variableOf(address: string, env: NodeJS.ProcessEnv): string | null {
  const names = Object.keys(env).filter((name) => env[name] === address && /^[A-Z]\w*$/.test(name))
  return [DEFAULT_VARIABLE, 'UNSTUCK_DB'].find((name) => names.includes(name)) ?? names[0] ?? null
}

/** Finds a table among those that the config has already. */
export function findAdopted(
  name: string,
  address: string,
  adopted: readonly Mapping[],
  ownAddress: string,
): Mapping | undefined {
  const wanted = splitTableName(name)
  return adopted.find(
    ({ schema, table, db }) =>
      (db ?? ownAddress) === address &&
      table === wanted.table &&
      (schema ?? 'public') === (wanted.schema ?? 'public'),
  )
}

/** A name for a table that no other in the config has. */
export function uniqueName(table: string, taken: ReadonlySet<string>): string {
  const tableName = splitTableName(table).table
  const choices = [tableName, table.replace('.', '_')]
  for (let n = 2; ; n++) {
    const free = choices.find((name) => !taken.has(name))
    if (free !== undefined) return free
    choices.push(`${tableName}_${n}`)
  }
}

/** One table of the config. */
export type ConfigEntry = {
  readonly name: string
  readonly options: AdoptedOptions
  readonly paths: Paths
  /** The table's database as code; null: Unstuck's own. */
  readonly dbCode: string | null
  /** Written as a comment that can be enabled; null: left out. */
  readonly cancelledValue: string | null
}

/** A whole config with these tables. `dbCode`: Unstuck's own database as code. */
export function configText(entries: readonly ConfigEntry[], dbCode: string): string {
  return `// Settings of Unstuck. All of them are explained in node_modules/unstuck/docs/reference/configuration.md
import { defineConfig } from 'unstuck'

export default defineConfig({
  // Unstuck's own database: what was done to which row, and how to undo it. Your tables keep their schema.
  db: ${dbCode},

  // With a preset, rows without a known owner are failed when they have not changed for a while: 5 minutes
  // in 'development', 15 in 'staging', 30 in 'production'. Without one they are reported and not changed.
  // preset: 'production',

${adoptedText(entries)}
})
`
}

/** The `adopted` part of a config. */
export function adoptedText(entries: readonly ConfigEntry[]): string {
  return ['  adopted: {', ...entries.flatMap(entryLines), '  },'].join('\n')
}

function entryLines({ name, options, paths, dbCode, cancelledValue }: ConfigEntry): string[] {
  const { table, kind, columns, statuses, policy } = options
  const key = /^[a-z_$][\w$]*$/i.test(name) ? name : literal(name)
  const lines = [
    `table: ${literal(table)},`,
    kind !== undefined && `kind: ${literal(kind)},`,
    dbCode !== null && `db: ${dbCode},`,
    'columns: {',
    ...Object.entries(columns).map(([field, column]) => `  ${field}: ${literal(column)},`),
    '},',
    'statuses: {',
    ...Object.entries(statuses).map(([meaning, values]) => `  ${meaning}: ${valuesText(values)},`),
    cancelledValue !== null &&
      `  // cancelled: ${literal(cancelledValue)}, // enables \`unstuck cancel\``,
    '},',
    ...pathLines(options, paths),
    kind !== 'targets' && '// delete: true, // lets `unstuck clean --delete ID` delete ended rows',
    ...(policy?.lease === undefined
      ? []
      : [
          '// A worker is lost when its heartbeat is older than this: several times your heartbeat interval.',
          `policy: { lease: ${literal(policy.lease)} },`,
        ]),
  ].filter((line) => line !== false)
  return [`    ${key}: {`, ...lines.map((line) => `      ${line}`), '    },']
}

function pathLines({ kind, columns }: AdoptedOptions, { checkpoint, outputDir }: Paths) {
  const from = (column: string): string => `(row) => String(row[${literal(column)}] ?? '')`
  const hasPath = checkpoint !== null || outputDir !== null
  const hasCheckpoint = checkpoint !== null || columns.checkpoint !== undefined
  const mayHaveFiles = !hasCheckpoint && kind !== 'targets'
  return [
    checkpoint !== null && `checkpoint: ${from(checkpoint)},`,
    outputDir !== null && `outputDir: ${from(outputDir)},`,
    hasPath && '// Paths outside this folder are not read. If your files are elsewhere:',
    hasPath && "// filesIn: '/data/crawls',",
    mayHaveFiles &&
      '// If your runs write checkpoint files: a run whose file is not empty can be continued.',
    mayHaveFiles && `// checkpoint: (row) => \`checkpoints/\${row[${literal(columns.id)}]}.json\`,`,
  ]
}

function valuesText(values: AdoptedStatuses['active']): string {
  const text = (value: StatusValue): string =>
    typeof value === 'string' ? literal(value) : String(value)
  return typeof values === 'object' ? `[${values.map(text).join(', ')}]` : text(values)
}

/** A string literal: escaped as JSON, in single quotes where nothing needs an escape. */
export function literal(text: string): string {
  const json = safeJson(text)
  return /['\\]/.test(json) ? json : `'${json.slice(1, -1)}'`
}
