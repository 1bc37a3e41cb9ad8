import { apiUrl, navigate } from './router.ts'

/** A failed call; its message is a sentence. */
export class ApiError extends Error {
  /** 0: no answer at all. */
  readonly status: number
  readonly code: string
  /** The whole answer: a refused plan brings the new preview. */
  readonly body: unknown
  /** Seconds, if the server sent them. */
  readonly retryAfter: number | null

  constructor(status: number, code: string, message: string, body?: unknown, retryAfter?: number) {
    super(message)
    this.status = status
    this.code = code
    this.body = body
    this.retryAfter = retryAfter ?? null
  }

  /** It may succeed in a moment: there was no response, or the database is unreachable. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 503
  }
}

type Method = 'GET' | 'POST' | 'DELETE'

/** Calls the API. Goes to the login page, and back, if the caller has to log in first. */
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
  const details = (answer as { error?: { code?: string; message?: string } } | null)?.error
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError(
    response.status,
    details?.code ?? 'UNKNOWN',
    details?.message ?? `The server answered with ${response.status} and did not say why.`,
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
