import { inShort, parseDuration } from '../../core/model/time.ts'

/** A flag of a command. Its key in `options` is its name: `maxAttempts` is `--max-attempts`. */
export type Option<T> = {
  readonly about: string
  /** What stands for the value in the help; null for a switch. */
  readonly value: string | null
  readonly initial: T
  /** How the help says it, where the value itself would not be read well. */
  readonly initialText?: string
  readonly read: (text: string) => Read<T>
  readonly many?: true
  readonly short?: string
  /** Written `--no-NAME`, and true without it. */
  readonly negated?: true
}

/** A positional argument. */
export type Argument<T> = {
  readonly about: string
  readonly shape: 'required' | 'optional' | 'rest'
  /** Only types: never set. */
  readonly gives?: T
}

type Read<T> = { readonly value: T } | { readonly mistake: string }

export type Options = Readonly<Record<string, Option<unknown>>>
export type Arguments = Readonly<Record<string, Argument<unknown>>>
export type OptionValues<O extends Options> = { [K in keyof O]: O[K]['initial'] }
export type ArgumentValues<A extends Arguments> = {
  [K in keyof A]: A[K] extends Argument<infer T> ? T : never
}

export const argument = {
  required: (about: string): Argument<string> => ({ about, shape: 'required' }),
  optional: (about: string): Argument<string | undefined> => ({ about, shape: 'optional' }),
  /** All that is left, as it was written. */
  rest: (about: string): Argument<string[]> => ({ about, shape: 'rest' }),
}

export const option = {
  flag: (about: string, short?: string): Option<boolean> => ({
    about,
    value: null,
    initial: false,
    read: () => ({ value: true }),
    ...(short && { short }),
  }),

  /** `--no-NAME`. */
  unless: (about: string): Option<boolean> => ({
    about,
    value: null,
    initial: true,
    read: () => ({ value: false }),
    negated: true,
  }),

  text: (value: string, about: string): Option<string | undefined> => ({
    about,
    value,
    initial: undefined,
    read: (text) => ({ value: text }),
  }),

  texts: (value: string, about: string): Option<readonly string[]> => ({
    about,
    value,
    initial: [],
    read: (text) => ({ value: [text] }),
    many: true,
  }),

  count: <T extends number | undefined>(
    value: string,
    about: string,
    initial: T,
    range: { min?: number; max?: number } = {},
  ): Option<T | number> => ({ about, value, initial, read: (text) => readCount(text, range) }),

  /** `all` is read as null. */
  countOrAll: (
    value: string,
    about: string,
    initial: number,
    range: { min?: number; max?: number } = {},
  ): Option<number | null> => ({
    about,
    value: `${value}|all`,
    initial,
    read: (text) => (text === 'all' ? { value: null } : readCount(text, range, ', or all')),
  }),

  /** Read into milliseconds. */
  duration: <T extends number | undefined>(
    value: string,
    about: string,
    initial: T,
  ): Option<T | number> => ({
    about,
    value,
    initial,
    read: readDuration,
    ...(initial !== undefined && { initialText: inShort(initial) }),
  }),

  /** Read into bytes. */
  size: <T extends number | undefined>(
    value: string,
    about: string,
    initial: T,
  ): Option<T | number> => ({
    about,
    value,
    initial,
    read: readSize,
    ...(initial !== undefined && { initialText: `${Math.round(initial / SIZES['M']!)}M` }),
  }),

  choice: <const C extends string, T extends C | undefined>(
    of: readonly C[],
    about: string,
    initial: T,
  ): Option<C | T> => ({
    about,
    value: of.join('|'),
    initial,
    read: (text) =>
      (of as readonly string[]).includes(text)
        ? { value: text as C }
        : { mistake: `must be one of ${of.join(', ')}` },
  }),
}

function readCount(
  text: string,
  { min = 1, max = 1_000_000 }: { min?: number; max?: number },
  more = '',
): Read<number> {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max
    ? { value }
    : { mistake: `must be a whole number from ${min} to ${max}${more}` }
}

function readDuration(text: string): Read<number> {
  const ms = parseDuration(text)
  return ms === null ? { mistake: 'must be a duration like 30s, 15m, 1h or 7d' } : { value: ms }
}

const SIZES: Record<string, number> = { K: 1_024, M: 1_024 ** 2, G: 1_024 ** 3 }

function readSize(text: string): Read<number> {
  const match = /^(\d{1,9}(?:\.\d+)?)([KMG])B?$/i.exec(text)
  const bytes = match && Math.round(Number(match[1]) * SIZES[match[2]!.toUpperCase()]!)
  return bytes ? { value: bytes } : { mistake: 'must be a size like 400M or 2G' }
}
