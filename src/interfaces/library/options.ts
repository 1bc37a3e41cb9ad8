import { CONNECTIONS_MAX } from '../../core/model/address.ts'
import {
  AMOUNT,
  ANYTHING,
  checkArgument,
  count,
  DURATION,
  FILLED_TEXT,
  FLAG,
  FUNCTION,
  listOf,
  optional,
  TEXT,
  type Field,
  type Fields,
} from '../../core/model/fields.ts'
import { isId } from '../../core/model/id.ts'
import { LIMITS } from '../../core/model/limits.ts'

/** What the calls of the library take: each is checked before anything is done. */

export const ID: Field = {
  rule: 'an id, as `unstuck runs --json` has them',
  fits: (value) => typeof value === 'string' && isId(value),
}
const TEXTS = optional(listOf(TEXT))

export const OPEN: Fields = {
  db: optional(TEXT),
  connections: optional(count(1, CONNECTIONS_MAX)),
  policy: optional(ANYTHING),
  adopted: optional(ANYTHING),
  onEvent: optional(FUNCTION),
  signals: optional(FLAG),
}
export const AGE: Fields = { age: optional(DURATION) }
export const BEGIN: Fields = { once: optional(FLAG) }
export const RECOVER: Fields = {
  dryRun: optional(FLAG),
  olderThanMs: optional(AMOUNT),
  sources: TEXTS,
  groups: TEXTS,
  only: optional({ rule: 'a set of ids', fits: (value) => value instanceof Set }),
  runs: optional({
    rule: 'true, false or a function',
    fits: (value) => FLAG.fits(value) || FUNCTION.fits(value),
  }),
  of: optional(FUNCTION),
  judge: optional(ANYTHING),
  self: optional(ID),
  clock: optional(ANYTHING),
}
export const RESET: Fields = {
  targets: optional(listOf(ID)),
  groups: TEXTS,
  maxAttempts: optional(count(0)),
  dryRun: optional(FLAG),
}
export const REWIND: Fields = {
  to: count(0),
  next: optional({
    rule: `an address of ${LIMITS.url} bytes at most`,
    fits: (value) => FILLED_TEXT.fits(value) && Buffer.byteLength(value as string) <= LIMITS.url,
  }),
  cursor: optional({ rule: 'any JSON', fits: (value) => !FUNCTION.fits(value) }),
}
export const HISTORY: Fields = {
  run: optional(ID),
  target: optional(ID),
  source: optional(TEXT),
  since: optional(AMOUNT),
  newestFirst: optional(FLAG),
  after: optional(AMOUNT),
  limit: optional(count(1, 10_000)),
}

export function checkRun(call: string, run: unknown): void {
  checkArgument(call, 'run', run, ID)
}

export function checkBecause(call: string, because: unknown): void {
  checkArgument(call, 'because', because, optional(FILLED_TEXT))
}
