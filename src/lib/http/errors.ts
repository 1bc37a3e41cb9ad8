import { stackOf } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../text/safe-text.ts'

/** A refused or failed call: status and code for the program, a message for its author. */
export class HttpError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>
  /** Further fields of the body, beside `error`. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    status: number,
    code: string,
    message: string,
    {
      headers = {},
      details = {},
      cause,
    }: Partial<Pick<HttpError, 'headers' | 'details' | 'cause'>> = {},
  ) {
    super(message, { cause })
    this.name = 'HttpError'
    this.status = status
    this.code = code
    this.headers = headers
    this.details = details
  }
}

/** Logs an error that the caller cannot fix, unless the caller hung up. Returns the id that the log line has. */
export function logUnexpected(
  error: unknown,
  call: string,
  signal: AbortSignal,
  log: (line: string) => void,
): string {
  const id = newId()
  const isDisconnect =
    signal.aborted || (error as NodeJS.ErrnoException | null)?.code === 'ECONNRESET'
  if (!isDisconnect) log(safeText(redact(`${call} (${id}): ${stackOf(error)}`)))
  return id
}
