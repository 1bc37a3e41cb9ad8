import { formatDuration, parseDuration } from '../core/model/time.ts'

/** A flag of a command. Its key in `options` is its name: `maxAttempts` is `--max-attempts`. */
export type Option<T> = {
  readonly description: string
  /** What stands for the value in the help; null for a switch. */
  readonly value: string | null
  readonly defaultValue: T
  /** The default as printed by the help, where the value itself is hard to read. */
  readonly defaultText?: string
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
    defaultValue,
    parse: (text) =>
      (of as readonly string[]).includes(text)
        ? { value: text as C }
        : { mistake: `must be one of ${of.join(', ')}` },
  }),
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
