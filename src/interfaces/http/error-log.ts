import { messageOf } from '../../core/model/errors.ts'
import { RateLimit } from '../../lib/http/limits.ts'
import type { HttpError } from '../../lib/http/errors.ts'

/** Refusals because of the caller, its origin or its rate; not those of invalid requests. */
export const COUNTED_CODES = [
  'UNAUTHORIZED',
  'FORBIDDEN',
  'READ_ONLY',
  'WRONG_ORIGIN',
  'MISDIRECTED',
  'TOO_MANY_REQUESTS',
  'ACCESS_TIMED_OUT',
  'ACCESS_FAILED',
] as const
export const LOGIN_RESULTS = ['ok', 'wrong_token', 'too_many', 'other'] as const

type CountedCode = (typeof COUNTED_CODES)[number]
type LoginResult = (typeof LOGIN_RESULTS)[number]

const LINES_PER_MINUTE = 30
const PATH_MAX = 200

/** Counts logins and refused calls for the metrics, and logs refused ones, with a limit of lines per minute. */
export class ErrorLog {
  readonly logins = zeros(LOGIN_RESULTS)
  readonly errors = zeros(COUNTED_CODES)
  readonly #log: (line: string) => void
  readonly #lines = new RateLimit(LINES_PER_MINUTE, 60_000)

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  countLogin(error?: unknown): void {
    this.logins[loginResult(error)]++
  }

  /** Ignores other refusals. */
  add({ method, url }: Request, address: string | null, httpError: HttpError): void {
    const { status, code, cause } = httpError
    if (!isCounted(code)) return
    this.errors[code]++
    const path = new URL(url).pathname
    const tooMany = this.#lines.take(path.endsWith('/api/login') ? 'logins' : 'calls')
    if (tooMany) {
      if (!tooMany.isFirst) return
      const rest = `for ${tooMany.afterSeconds} s; unstuck_http_refused_total counts all.`
      this.#log(`More refused calls are not logged ${rest}`)
      return
    }
    const why = cause === undefined ? '' : `: ${messageOf(cause)}`
    const from = address === null ? '' : ` from ${address}`
    this.#log(`Refused ${method} ${path.slice(0, PATH_MAX)}${from}: ${status} ${code}${why}`)
  }
}

function loginResult(error: unknown): LoginResult {
  if (error === undefined) return 'ok'
  const { code } = error as { code?: unknown }
  if (code === 'UNAUTHORIZED') return 'wrong_token'
  return code === 'TOO_MANY_REQUESTS' ? 'too_many' : 'other'
}

function isCounted(code: string): code is CountedCode {
  return (COUNTED_CODES as readonly string[]).includes(code)
}

function zeros<K extends string>(keys: readonly K[]): Record<K, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>
}
