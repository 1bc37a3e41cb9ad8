import { CONNECTIONS_MAX } from '../../core/model/address.ts'
import {
  NON_NEGATIVE_INTEGER,
  ANYTHING,
  checkArgument,
  integerBetween,
  DURATION,
  NON_EMPTY_STRING,
  BOOLEAN,
  FUNCTION,
  arrayOf,
  optional,
  STRING,
  type Field,
  type Fields,
} from '../../core/model/fields.ts'
import { isId } from '../../core/model/id.ts'
import { LIMITS } from '../../core/model/limits.ts'

/** What the calls of the library take: each is checked before anything is done. */

export const ID_FIELD: Field = {
  rule: 'an id, as `unstuck runs --json` has them',
  isValid: (value) => typeof value === 'string' && isId(value),
}
const TEXT_LIST = optional(arrayOf(STRING))

export const OPEN_FIELDS: Fields = {
  db: optional(STRING),
  connections: optional(integerBetween(1, CONNECTIONS_MAX)),
  policy: optional(ANYTHING),
  adopted: optional(ANYTHING),
  onEvent: optional(FUNCTION),
  signals: optional(BOOLEAN),
}
export const AGE_FIELDS: Fields = { age: optional(DURATION) }
export const BEGIN_FIELDS: Fields = { once: optional(BOOLEAN) }
export const RECOVER_FIELDS: Fields = {
  dryRun: optional(BOOLEAN),
  olderThanMs: optional(NON_NEGATIVE_INTEGER),
  sources: TEXT_LIST,
  groups: TEXT_LIST,
  only: optional({ rule: 'a set of ids', isValid: (value) => value instanceof Set }),
  runs: optional({
    rule: 'true, false or a function',
    isValid: (value) => BOOLEAN.isValid(value) || FUNCTION.isValid(value),
  }),
  runFilter: optional(FUNCTION),
  observer: optional(ANYTHING),
  self: optional(ID_FIELD),
  clock: optional(ANYTHING),
}
export const RESET_FIELDS: Fields = {
  targets: optional(arrayOf(ID_FIELD)),
  groups: TEXT_LIST,
  maxAttempts: optional(integerBetween(0)),
  dryRun: optional(BOOLEAN),
}
export const REWIND_FIELDS: Fields = {
  to: integerBetween(0),
  next: optional({
    rule: `an address of ${LIMITS.url} bytes at most`,
    isValid: (value) =>
      NON_EMPTY_STRING.isValid(value) && Buffer.byteLength(value as string) <= LIMITS.url,
  }),
  cursor: optional({ rule: 'any JSON', isValid: (value) => !FUNCTION.isValid(value) }),
}
export const HISTORY_FIELDS: Fields = {
  run: optional(ID_FIELD),
  target: optional(ID_FIELD),
  source: optional(STRING),
  since: optional(NON_NEGATIVE_INTEGER),
  newestFirst: optional(BOOLEAN),
  after: optional(NON_NEGATIVE_INTEGER),
  limit: optional(integerBetween(1, 10_000)),
}

export function checkRunId(call: string, run: unknown): void {
  checkArgument(call, 'run', run, ID_FIELD)
}

export function checkBecause(call: string, because: unknown): void {
  checkArgument(call, 'because', because, optional(NON_EMPTY_STRING))
}
