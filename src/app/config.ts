import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as v from 'valibot'
import { TABLE_RUN_KEY } from '../features/adopted/ids.ts'
import type { AdoptedOptions, Mapping } from '../features/adopted/mapping.ts'
import { configPathOf } from '../features/adopted/parse-mapping.ts'
import { adoptedRun } from '../features/adopted/runs/status-mapping.ts'
import { addressMistake, CONNECTIONS_MISTAKE, isConnections } from '../core/model/address.ts'
import { messageOf, UsageError } from '../core/model/errors.ts'
import { isObject, NON_EMPTY_STRING, optional, STRING, type Fields } from '../core/model/fields.ts'
import { registerSecrets, passwordsIn } from '../core/model/redact.ts'
import {
  DEFAULT_POLICY,
  makePolicy,
  type Policy,
  type PolicyOptions,
} from '../core/model/policy.ts'
import {
  makePolicyOf,
  policyOverride,
  PRESETS,
  type PolicyOf,
  type PolicyOverrides,
  type PolicySubject,
  type Preset,
} from '../core/model/policy-of.ts'
import { readAdopted } from '../features/adopted/config.ts'
import { findConfig } from '../lib/files/config-file.ts'
import {
  alertSecrets,
  readAlerts,
  type AlertOptions,
  type AlertSettings,
  type ChannelOptions,
} from '../features/alerts/config.ts'
import { object, validate, type Schema } from '../lib/validate/validate.ts'
import { traceSettings, type PolicySetting } from './policy-origin.ts'

/** `unstuck.config.ts`, as users write it. */
export type Config = {
  /** `sqlite:PATH` (from this file's folder) or `postgres://…`. */
  db?: string | undefined
  /** PostgreSQL connections for the work of each process, 2 by default. Its heartbeat has two more. */
  connections?: number | undefined
  /** How old a run without a known owner may get before it is failed: 5, 15 or 30 minutes. */
  preset?: Preset | undefined
  /** By source. */
  policies?: Readonly<Record<string, PolicyOptions>> | undefined
  /** Where people reach the dashboard: alerts link to it. */
  url?: string | undefined
  /** When people are told, and how. */
  alerts?: readonly AlertOptions[] | undefined
  /** How people are told. */
  channels?: ChannelOptions | undefined
  /** Tables of the user's own, by a name for each. */
  adopted?: Readonly<Record<string, AdoptedOptions>> | undefined
}

/** Slow honest runs are older than people think. */
export const RISKY_ABANDON_MS = 12 * 3_600_000

/** Types for `unstuck.config.ts`; what is written is what is used. */
export function defineConfig(config: Config): Config {
  return config
}

/** A config that was found correct, or the defaults where there is none. */
export type Settings = {
  /** Null: no config was found. */
  readonly path: string | null
  readonly db: string | undefined
  readonly connections: number | undefined
  /** Correct, but probably not meant. */
  readonly warnings: readonly string[]
  /** Defaults, then the preset, then what the crawl itself asks for, then the config's word on this source. */
  policyFor(source: string, crawlOptions?: PolicyOptions): Policy
  /** What the config says about policies, as plain JSON. */
  readonly overrides: PolicyOverrides
  /** The policy that applies to a run now: the one stored with it and the overrides, which may be newer. */
  readonly policyOf: PolicyOf
  /** The same setting by setting, each with where it comes from. Without a run: for one that starts now. */
  settingsOf(source: string, run?: Omit<PolicySubject, 'source'>): PolicySetting[]
  /** Sources that the config has a word on. */
  readonly sources: readonly string[]
  readonly preset: string | null
  readonly url: string | null
  readonly alerts: AlertSettings
  /** Tables of the user's own. */
  readonly adopted: readonly Mapping[]
}

/** Which database and which config code uses. */
export type DatabaseOptions = {
  /** `sqlite:PATH` or `postgres://…`. @default `UNSTUCK_DB`, else that of the config, else `'sqlite:.unstuck/unstuck.db'` */
  db?: string | undefined
  /** A config, the path of its file, or `false` for none. @default the nearest `unstuck.config.*`, from the current folder upwards */
  config?: Config | string | false | undefined
}

/** The options of `DatabaseOptions`, for the checks of each call. */
export const DATABASE_FIELDS: Fields = {
  db: optional(STRING),
  config: optional({
    rule: 'a config, the path of its file, or false',
    isValid: (value) => value === false || NON_EMPTY_STRING.isValid(value) || isObject(value),
  }),
}

/** Returns the settings of a config: the given one, or the nearest to the folder. `proposed`: tables to adopt besides. */
export async function loadSettings(
  cwd: string,
  config?: DatabaseOptions['config'],
  proposed?: Config['adopted'],
): Promise<Settings> {
  const path =
    config === undefined
      ? findConfig(cwd)
      : typeof config === 'string'
        ? resolve(cwd, config)
        : null
  const loaded = path === null ? config || {} : await importConfig(path)
  if (!proposed || !isObject(loaded)) return makeSettings(loaded, path)
  const adopted = isObject(loaded['adopted']) ? loaded['adopted'] : {}
  return makeSettings({ ...loaded, adopted: { ...adopted, ...proposed } }, path)
}

const TYPE_STRIPPING_HINT =
  'Node runs it as it is: imports need their file extension, and enum, namespace and parameter properties are not there.'
const MODULE_TYPE_HINT =
  'Its package.json does not say "type": "module". Say it there, or name the file unstuck.config.mts.'

async function importConfig(path: string): Promise<unknown> {
  let module: { default?: unknown }
  try {
    module = await import(pathToFileURL(path).href)
  } catch (error) {
    const message = messageOf(error)
    const isNotModule = /outside a module|Unexpected token 'export'/.test(message)
    throw new UsageError(
      `${path} could not be loaded: ${message}\n${isNotModule ? MODULE_TYPE_HINT : TYPE_STRIPPING_HINT}`,
      { cause: error },
    )
  }
  if (module.default === undefined) {
    throw new UsageError(
      `${path} has no default export. Write \`export default defineConfig({ … })\`.`,
    )
  }
  return module.default
}

/** Checks everything and names all mistakes at once. */
export function makeSettings(config: unknown, path: string | null): Settings {
  const mistakes: string[] = []
  const warnings: string[] = []
  const { db, connections, preset, policies, url, alerts, adopted } = readShape(
    config,
    mistakes,
    warnings,
  )
  const base: Policy = { ...DEFAULT_POLICY, ...(preset && PRESETS[preset]) }
  for (const [source, options] of Object.entries(policies ?? {})) {
    const made = makePolicy(options, base)
    mistakes.push(...made.mistakes.map((mistake) => qualifyMistake(mistake, source)))
    if (isRisky(made.policy)) warnings.push(riskyWarning(`policies[${JSON.stringify(source)}]`))
  }
  const folder = path === null ? process.cwd() : dirname(path)
  const tables = readAdopted(adopted, base, { folder, ownDb: db }, mistakes)
  for (const { name } of tables.filter(({ policy }) => isRisky(policy))) {
    warnings.push(riskyWarning(`${configPathOf(name)}.policy`))
  }
  if (mistakes.length > 0) {
    const list = mistakes.map((mistake) => `\n- ${mistake}`).join('')
    throw new UsageError(`${path ?? 'The given config'} is invalid:${list}`)
  }
  registerSecrets([...passwordsIn(db ?? ''), ...alertSecrets(alerts)])
  const overrides: PolicyOverrides = { preset: preset ?? null, policies: policies ?? {} }
  const policyOf = makePolicyOf(overrides)
  const buildPolicy = (source: string, options: PolicyOptions | undefined, on: Policy): Policy => {
    const { policy, mistakes } = makePolicy(options, on)
    if (mistakes.length > 0)
      throw new UsageError(`The policy of ${source}: ${mistakes.join('; ')}.`)
    return policy
  }
  const policyFor: Settings['policyFor'] = (source, own) =>
    buildPolicy(source, mergePolicies(own, policyOverride(overrides, source)), base)
  return {
    path,
    db,
    connections,
    warnings,
    sources: [...new Set([...Object.keys(policies ?? {}), ...tables.map(({ name }) => name)])],
    preset: preset ?? null,
    url,
    alerts,
    adopted: tables,
    policyFor,
    overrides,
    policyOf,
    settingsOf: (source, run = tablePolicy(tables, source)) =>
      traceSettings(run ? policyOf({ ...run, source }) : policyFor(source), {
        configured: policyOverride(overrides, source) ?? {},
        preset: preset ? PRESETS[preset] : {},
        ownOrigin: run?.adopted ? 'adopted' : 'crawl',
      }),
  }
}

function isRisky({ abandonAfterMs }: Policy): boolean {
  return abandonAfterMs < RISKY_ABANDON_MS
}

function riskyWarning(where: string): string {
  return `${where}.abandonAfter is below 12 h: a slow honest run may look dead.`
}

/** A source that is the name of an adopted table is that of its rows, unless they have sources of their own. */
function tablePolicy(
  tables: readonly Mapping[],
  source: string,
): Omit<PolicySubject, 'source'> | undefined {
  const table = tables.find(({ name }) => name === source)
  return table && { policy: table.policy, adopted: adoptedRun(table, TABLE_RUN_KEY) }
}

/** What is said last counts, in groups too. */
function mergePolicies(first: PolicyOptions = {}, then: PolicyOptions = {}): PolicyOptions {
  if (!first.groups || !then.groups) return { ...first, ...then }
  const groups = { ...first.groups }
  for (const [group, options] of Object.entries(then.groups)) {
    groups[group] = { ...groups[group], ...options }
  }
  return { ...first, ...then, groups }
}

type ConfigShape = Pick<Config, 'db' | 'connections' | 'preset' | 'policies'> &
  Pick<Settings, 'url' | 'alerts'> & { readonly adopted: unknown }

const CONFIG = object({
  db: v.optional(
    v.pipe(
      v.string('must be text, or left out'),
      v.check(
        (db) => addressMistake(db) === null,
        ({ input }) => addressMistake(input) ?? '',
      ),
    ),
  ),
  connections: v.optional(v.custom<number>(isConnections, CONNECTIONS_MISTAKE)),
  preset: v.optional(
    v.custom<Preset>(
      (preset) => typeof preset === 'string' && Object.hasOwn(PRESETS, preset),
      `must be one of ${Object.keys(PRESETS).join(', ')}`,
    ),
  ),
  policies: v.optional(
    v.custom<Readonly<Record<string, PolicyOptions>>>(isObject, 'must be an object, by source'),
  ),
  url: v.optional(
    v.custom<string>(
      (url) => url === '' || pageOf(url) !== null,
      'must be where people reach the dashboard, as in https://unstuck.example.com',
    ),
  ),
  alerts: v.optional(v.unknown()),
  channels: v.optional(v.unknown()),
  adopted: v.optional(v.unknown()),
} satisfies Record<keyof Config, Schema>)

function readShape(value: unknown, mistakes: string[], warnings: string[]): ConfigShape {
  const read = validate(CONFIG, value, { whole: 'the default export' })
  mistakes.push(...read.mistakes)
  // The parts are checked even if the whole has mistakes, so that all are named at once.
  const { policies, alerts, channels, adopted } = isObject(value) ? value : {}
  const { db, connections, preset, url } = read.value ?? {}
  return {
    db,
    connections,
    preset,
    policies: isObject(policies) ? (policies as Config['policies']) : undefined,
    url: pageOf(url),
    alerts: readAlerts(alerts, channels, mistakes, warnings),
    adopted,
  }
}

/** Returns the address of a page without query and fragment; null if it is none, or contains a password. */
function pageOf(url: unknown): string | null {
  const page = typeof url === 'string' ? URL.parse(url) : null
  const isPage = page !== null && /^https?:$/.test(page.protocol) && page.username === ''
  return isPage ? page.origin + page.pathname : null
}

function qualifyMistake(mistake: string, source: string): string {
  return mistake.replace(/^policy/, () => `policies[${JSON.stringify(source)}]`)
}
