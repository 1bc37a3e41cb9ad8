import { apiUrl, navigate } from './router.ts'

/** A call that did not do what it was asked; the message is a sentence for people. */
export class ApiError extends Error {
  /** 0: no answer at all. */
  readonly status: number
  readonly code: string
  /** The whole answer: a refused plan brings the new preview. */
  readonly body: unknown
  /** Seconds, when the server said so. */
  readonly retryAfter: number | null

  constructor(status: number, code: string, message: string, body?: unknown, retryAfter?: number) {
    super(message)
    this.status = status
    this.code = code
    this.body = body
    this.retryAfter = retryAfter ?? null
  }

  /** A retry may succeed: the server did not answer, or the database is unreachable. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 503
  }
}

type Method = 'GET' | 'POST' | 'DELETE'

/** Calls the API. A caller that must log in is sent to the login page and back. */
export async function call<T>(
  method: Method,
  path: string,
  { body, signal }: { body?: unknown; signal?: AbortSignal } = {},
): Promise<T> {
  const isMutation = method !== 'GET'
  const request: RequestInit = {
    method,
    headers: {
      accept: 'application/json',
      ...(isMutation && { 'content-type': 'application/json' }),
    },
    ...(isMutation && { body: JSON.stringify(body ?? {}) }),
    ...(signal && { signal }),
  }
  const unreachable = (error: unknown): never => {
    if (signal?.aborted) throw error
    throw new ApiError(
      0,
      'UNREACHABLE',
      'The server does not answer. Is `unstuck serve` still running?',
    )
  }
  const response = await fetch(apiUrl(path), request).catch(unreachable)
  // An answer that broke off in the middle is none.
  if (response.ok) return (await response.json().catch(unreachable)) as T
  const error = toApiError(response, await response.json().catch(() => null))
  if (error.status === 401 && path !== '/api/login') redirectToLogin()
  throw error
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return call<T>('GET', path, signal ? { signal } : {})
}

function toApiError(response: Response, answer: unknown): ApiError {
  const said = (answer as { error?: { code?: string; message?: string } } | null)?.error
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError(
    response.status,
    said?.code ?? 'UNKNOWN',
    said?.message ?? `The server answered with ${response.status} and did not say why.`,
    answer,
    Number.isFinite(retryAfter) ? retryAfter : undefined,
  )
}

function redirectToLogin(): void {
  const from = location.pathname + location.search
  const base = apiUrl('')
  const next = from.startsWith(base) ? `/${from.slice(base.length)}` : '/'
  if (next.startsWith('/login')) return
  navigate(`/login?next=${encodeURIComponent(next)}`, { replace: true })
}
