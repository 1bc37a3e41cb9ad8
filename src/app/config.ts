import { dirname, resolve } from 'node:path'
import * as v from 'valibot'
import type { ConfigContext, ConfigSection, Secret, Settings } from '../contracts/settings.ts'
import { CONNECTIONS_MISTAKE, isConnections } from '../core/model/limits.ts'
import { addressMistake } from '../lib/files/database-address.ts'
import { UsageError } from '../core/model/errors.ts'
import { isObject, optional, STRING, type Fields } from '../core/model/fields.ts'
import { NON_EMPTY_STRING } from '../lib/validate/fields.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import {
  makePolicy,
  readPolicyOptions,
  type PolicyOptions,
} from '../lib/validate/policy-options.ts'
import {
  makePolicyOf,
  PRESETS,
  type PolicyOverrides,
  type Preset,
} from '../core/model/policy-of.ts'
import { passwordsIn, registerSecrets } from '../core/model/redact.ts'
import {
  FEATURES,
  type AdoptedOptions,
  type AlertOptions,
  type ChannelOptions,
} from '../features/index.ts'
import { importModule } from './import-module.ts'
import { findConfig } from '../lib/files/config-file.ts'
import { object, validate } from '../lib/validate/validate.ts'
import { traceSettings } from '../presenters/policy-settings.ts'

/** `unstuck.config.ts`, as users write it. */
export type Config = {
  /** `sqlite:PATH` (from this file's folder) or `postgres://…`. @default 'sqlite:.unstuck/unstuck.db' */
  db?: string | undefined
  /** PostgreSQL connections for the work of each process. Its heartbeat has two more. @default 2 */
  connections?: number | undefined
  /** Idle time after which a run without a known owner fails: 5, 15 or 30 minutes. @default none */
  preset?: Preset | undefined
  /** By source; they win over those of a crawl. @default {} */
  policies?: Readonly<Record<string, PolicyOptions>> | undefined
  /** The address of the dashboard, for links in alerts. @default none */
  url?: string | undefined
  /** When to notify, and through which channels. @default all kinds, shown in the dashboard only */
  alerts?: readonly AlertOptions[] | undefined
  /** Where notifications go. @default nowhere */
  channels?: ChannelOptions | undefined
  /** Your own tables, by a name for each. @default none */
  adopted?: Readonly<Record<string, AdoptedOptions>> | undefined
}

/** Below this, a slow run may be taken for a dead one. */
export const RISKY_ABANDON_MS = 12 * 3_600_000

/** Checks the types of `unstuck.config.ts`. Returns its argument. */
export function defineConfig(config: Config): Config {
  return config
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

/** Returns the settings of a config: the given one, or the nearest to the folder. */
export async function loadSettings(
  cwd: string,
  config?: DatabaseOptions['config'],
): Promise<Settings> {
  if (typeof config === 'object' || config === false) return makeSettings(config || {}, null)
  const path = config === undefined ? findConfig(cwd) : resolve(cwd, config)
  return makeSettings(path === null ? {} : await importConfig(path), path)
}

async function importConfig(path: string): Promise<unknown> {
  const module = await importModule(path)
  if (module.default === undefined) {
    throw new UsageError(
      `${path} has no default export. Write \`export default defineConfig({ … })\`.`,
    )
  }
  return module.default
}

export async function makeSettings(config: unknown, path: string | null): Promise<Settings> {
  return readSettings(config, path, await loadSections())
}

/** Validates everything and reports all mistakes at once. */
export function readSettings(
  config: unknown,
  path: string | null,
  sections: readonly ConfigSection<any>[],
): Settings {
  const mistakes: string[] = []
  const warnings: string[] = []
  const values = isObject(config) ? config : {}
  const { db, connections, preset, policies, url } = readCommon(config, sections, mistakes)
  const base: Policy = { ...DEFAULT_POLICY, ...(preset && PRESETS[preset]) }
  const warnIfRisky: ConfigContext['warnIfRisky'] = ({ abandonAfterMs }, setting) => {
    if (abandonAfterMs < RISKY_ABANDON_MS)
      warnings.push(`${setting}.abandonAfter is below 12 h: a slow run may look dead.`)
  }
  for (const [source, options] of Object.entries(policies)) {
    const setting = `policies[${JSON.stringify(source)}]`
    const made = makePolicy(options, base)
    mistakes.push(...made.mistakes.map((mistake) => mistake.replace(/^policy/, () => setting)))
    warnIfRisky(made.policy, setting)
  }
  const folder = path === null ? process.cwd() : dirname(path)
  const context: ConfigContext = { mistakes, warnings, policy: base, folder, db, warnIfRisky }
  const read = new Map<ConfigSection<any>, unknown>(
    sections.map((section) => [section, section.read(values, context)]),
  )
  if (mistakes.length > 0) {
    const list = mistakes.map((mistake) => `\n- ${mistake}`).join('')
    throw new UsageError(`${path ?? 'The given config'} is invalid:${list}`)
  }
  const tables = [...read].flatMap(([{ tables }, section]) => tables?.(section) ?? [])
  const secrets: Secret[] = [...read].flatMap(([one, section]) => one.secrets?.(section) ?? [])
  registerSecrets([...passwordsIn(db ?? ''), ...secrets.map(({ value }) => value)])
  const changes = Object.entries(policies).map(
    ([source, options]) => [source, readPolicyOptions(options).changes] as const,
  )
  const overrides: PolicyOverrides = {
    preset: preset ?? null,
    policies: Object.fromEntries(changes),
  }
  const configuredFor = (source: string): PolicyOptions =>
    (Object.hasOwn(policies, source) && policies[source]) || {}
  const policyOf = makePolicyOf(overrides)
  const policyFor: Settings['policyFor'] = (source, own) => {
    const options = mergePolicies(own, configuredFor(source))
    const { policy, mistakes } = makePolicy(options, base)
    if (mistakes.length > 0)
      throw new UsageError(`The policy of ${source}: ${mistakes.join('; ')}.`)
    return policy
  }
  return {
    path,
    db,
    connections,
    warnings,
    secrets,
    sources: [...new Set([...Object.keys(policies), ...tables.map(({ name }) => name)])],
    preset: preset ?? null,
    url,
    tables: tables.map(({ name }) => name),
    policyFor,
    overrides,
    policyOf,
    // A source with the name of a table is that of its rows, unless they have sources of their own.
    settingsOf: (source, run = tables.find(({ name }) => name === source)?.subject) =>
      traceSettings(run ? policyOf({ ...run, source }) : policyFor(source), {
        configured: configuredFor(source),
        preset: preset ? PRESETS[preset] : {},
        ownOrigin: run?.traits.origin ? 'table' : 'crawl',
      }),
    section: <T>(section: ConfigSection<T>) => read.get(section) as T,
  }
}

/** Returns what the sections of features show, for `unstuck config show` and the API. */
export async function sectionViews(settings: Settings): Promise<any> {
  const sections = await loadSections()
  return Object.assign(
    {},
    ...sections.map((one) => one.view?.(settings.section(one), settings) ?? {}),
  )
}

export function loadSections(): Promise<ConfigSection<any>[]> {
  return Promise.all(FEATURES.flatMap((one) => (one.config ? [one.config()] : [])))
}

/** Later options win, also within groups. */
function mergePolicies(first: PolicyOptions = {}, then: PolicyOptions = {}): PolicyOptions {
  if (!first.groups || !then.groups) return { ...first, ...then }
  const groups = { ...first.groups }
  for (const [group, options] of Object.entries(then.groups)) {
    groups[group] = { ...groups[group], ...options }
  }
  return { ...first, ...then, groups }
}

const COMMON = {
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
      'must be the address of the dashboard, as in https://unstuck.example.com',
    ),
  ),
}

type Common = {
  readonly db: string | undefined
  readonly connections: number | undefined
  readonly preset: Preset | undefined
  readonly policies: Readonly<Record<string, PolicyOptions>>
  readonly url: string | null
}

/** Reads what belongs to no feature, and rejects unknown keys. */
function readCommon(
  config: unknown,
  sections: readonly ConfigSection<unknown>[],
  mistakes: string[],
): Common {
  const keys = sections.flatMap((section) => section.keys)
  const others = Object.fromEntries(keys.map((key) => [key, v.optional(v.unknown())]))
  const read = validate(object({ ...COMMON, ...others }), config, { whole: 'the default export' })
  mistakes.push(...read.mistakes)
  // The parts are checked even if the whole has mistakes, so that all are reported at once.
  const policies = isObject(config) ? config['policies'] : undefined
  const { db, connections, preset, url } = read.value ?? {}
  return {
    db,
    connections,
    preset,
    policies: isObject(policies) ? (policies as Common['policies']) : {},
    url: pageOf(url),
  }
}

/** Returns the address of a page without query and fragment; null if it is none, or contains a password. */
function pageOf(url: unknown): string | null {
  const page = typeof url === 'string' ? URL.parse(url) : null
  const isPage = page !== null && /^https?:$/.test(page.protocol) && page.username === ''
  return isPage ? page.origin + page.pathname : null
}
