import { formatDuration, parseDuration } from '../core/model/time.ts'

/** A flag of a command. Its key in `options` is its name: `maxAttempts` is `--max-attempts`. */
export type Option<T> = {
  readonly description: string
  /** What stands for the value in the help; null for a switch. */
  readonly value: string | null
  readonly defaultValue: T
  /** The default as printed by the help: where the value itself is hard to read, or the command works it out. */
  readonly defaultText?: string
  /** The possible values. */
  readonly choices?: readonly string[]
  readonly parse: (text: string) => ParseResult<T>
  readonly many?: true
  readonly short?: string
  /** Written `--no-NAME`, and true without it. */
  readonly negated?: true
}

/** A positional argument. */
export type Argument<T> = {
  readonly description: string
  readonly shape: 'required' | 'optional' | 'rest'
  /** The possible values. */
  readonly choices?: readonly string[]
  /** Only types: never set. */
  readonly gives?: T
}

type ParseResult<T> = { readonly value: T } | { readonly mistake: string }

export type Options = Readonly<Record<string, Option<unknown>>>
export type Arguments = Readonly<Record<string, Argument<unknown>>>
export type OptionValues<O extends Options> = { [K in keyof O]: O[K]['defaultValue'] }
export type ArgumentValues<A extends Arguments> = {
  [K in keyof A]: A[K] extends Argument<infer T> ? T : never
}

export const argument = {
  required: (description: string): Argument<string> => ({ description, shape: 'required' }),
  optional: (description: string): Argument<string | undefined> => ({
    description,
    shape: 'optional',
  }),
  /** One of these. */
  choice: <const C extends string>(of: readonly C[], description: string): Argument<C> => ({
    description,
    shape: 'required',
    choices: of,
  }),
  /** All that is left, as it was written. */
  rest: (description: string): Argument<string[]> => ({ description, shape: 'rest' }),
}

export const option = {
  flag: (description: string, short?: string): Option<boolean> => ({
    description,
    value: null,
    defaultValue: false,
    parse: () => ({ value: true }),
    ...(short && { short }),
  }),

  /** `--no-NAME`. */
  unless: (description: string): Option<boolean> => ({
    description,
    value: null,
    defaultValue: true,
    parse: () => ({ value: false }),
    negated: true,
  }),

  text: (value: string, description: string): Option<string | undefined> => ({
    description,
    value,
    defaultValue: undefined,
    parse: (text) => ({ value: text }),
  }),

  texts: (value: string, description: string): Option<readonly string[]> => ({
    description,
    value,
    defaultValue: [],
    parse: (text) => ({ value: [text] }),
    many: true,
  }),

  count: <T extends number | undefined>(
    value: string,
    description: string,
    defaultValue: T,
    range: { min?: number; max?: number } = {},
  ): Option<T | number> => ({
    description,
    value,
    defaultValue,
    parse: (text) => parseCount(text, range),
  }),

  /** `all` is read as null. */
  countOrAll: (
    value: string,
    description: string,
    defaultValue: number,
    range: { min?: number; max?: number } = {},
  ): Option<number | null> => ({
    description,
    value: `${value}|all`,
    defaultValue,
    parse: (text) => (text === 'all' ? { value: null } : parseCount(text, range, ', or all')),
  }),

  /** Read into milliseconds. */
  duration: <T extends number | undefined>(
    value: string,
    description: string,
    defaultValue: T,
  ): Option<T | number> => ({
    description,
    value,
    defaultValue,
    parse: parseDurationOption,
    ...(defaultValue !== undefined && { defaultText: formatDuration(defaultValue) }),
  }),

  /** Read into bytes. */
  size: <T extends number | undefined>(
    value: string,
    description: string,
    defaultValue: T,
  ): Option<T | number> => ({
    description,
    value,
    defaultValue,
    parse: parseSize,
    ...(defaultValue !== undefined && {
      defaultText: `${Math.round(defaultValue / SIZES['M']!)}M`,
    }),
  }),

  choice: <const C extends string, T extends C | undefined>(
    of: readonly C[],
    description: string,
    defaultValue: T,
  ): Option<C | T> => ({
    description,
    value: of.join('|'),
    choices: of,
    defaultValue,
    parse: (text) => parseChoice(text, of),
  }),

  /** One or several of them. */
  choices: <const C extends string>(
    of: readonly C[],
    description: string,
  ): Option<readonly C[]> => ({
    description,
    value: of.join('|'),
    choices: of,
    defaultValue: [],
    many: true,
    parse: (text) => {
      const one = parseChoice(text, of)
      return 'value' in one ? { value: [one.value] } : one
    },
  }),
}

/** Returns the option with the text of a default that the command works out. */
export function defaultsTo<O extends Option<any>>(defaultText: string, given: O): O {
  return { ...given, defaultText }
}

/** Flags of several commands: one name, one meaning. */
export const SHARED_OPTIONS = {
  after: option.text('CURSOR', 'continue after this entry: `next` of the last page'),
  age: defaultsTo(
    '`abandonAfter` of its policy',
    option.duration('AGE', 'age from which a run is dead', undefined),
  ),
  because: option.text('TEXT', 'why, for the audit trail'),
  dbTimeout: option.duration(
    'TIME',
    'how long the start waits for a database that does not answer; 0s: it fails at once',
    30_000,
  ),
  dryRun: option.flag('print what would be done, and change nothing'),
  follow: option.flag('continue with new lines until the end, or Ctrl-C', '-f'),
  force: option.flag('replace files that exist'),
  group: option.text('GROUP', 'only of this group; "": of none'),
  groups: option.texts('GROUP', 'only targets of these groups'),
  interval: option.duration('TIME', 'start it again this long after each end', undefined),
  kills: <T extends number | undefined>(defaultValue: T, min: number) =>
    option.count('N', 'how many kills', defaultValue, { min, max: 10_000 }),
  limit: <T extends number | undefined>(defaultValue: T, max = 1_000_000) =>
    option.count('N', 'how many', defaultValue, { max }),
  maxDuration: <T extends number | undefined>(defaultValue: T) =>
    option.duration('TIME', 'end it after this long', defaultValue),
  readOnly: option.flag('change nothing: no actions, no recovery, no alerts'),
  run: option.text('RUN', 'only of this run: its id, or its source'),
  seed: option.count('N', 'repeat the kills of this seed', undefined, { min: 0 }),
  since: option.duration('AGE', 'only what is newer', undefined),
  source: option.text('SOURCE', 'the source it is about'),
  sources: option.texts('SOURCE', 'only runs of these sources'),
  workers: (defaultValue: number, max = 256) =>
    option.count('N', 'worker processes; dead ones are started again', defaultValue, { max }),
  /** Of every command that changes something, also of one that asks nothing: a script may give it to all. */
  yes: option.flag('do not ask', '-y'),
} as const

function parseChoice<C extends string>(text: string, of: readonly C[]): ParseResult<C> {
  return (of as readonly string[]).includes(text)
    ? { value: text as C }
    : { mistake: `must be one of ${of.join(', ')}` }
}

function parseCount(
  text: string,
  { min = 1, max = 1_000_000 }: { min?: number; max?: number },
  more = '',
): ParseResult<number> {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max
    ? { value }
    : { mistake: `must be a whole number from ${min} to ${max}${more}` }
}

function parseDurationOption(text: string): ParseResult<number> {
  const ms = parseDuration(text)
  return ms === null ? { mistake: 'must be a duration like 30s, 15m, 1h or 7d' } : { value: ms }
}

const SIZES: Record<string, number> = { K: 1_024, M: 1_024 ** 2, G: 1_024 ** 3 }

function parseSize(text: string): ParseResult<number> {
  const match = /^(\d{1,9}(?:\.\d+)?)([KMG])B?$/i.exec(text)
  const bytes = match && Math.round(Number(match[1]) * SIZES[match[2]!.toUpperCase()]!)
  return bytes ? { value: bytes } : { mistake: 'must be a size like 400M or 2G' }
}
