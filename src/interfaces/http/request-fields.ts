import * as v from 'valibot'
import { isId, isIdEnding } from '../../core/model/id.ts'
import { INTEGER_MAX } from '../../core/model/limits.ts'
import { parseDuration } from '../../core/model/time.ts'
import { sourceMistake } from '../../lib/validate/source.ts'

/** Fields of requests that several routes have. */

const PAGE_MAX = 500
const TEXT_MAX = 200

export const id = v.pipe(
  v.string(),
  v.regex(
    /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{8}$/,
    'is a full id, or its last 8 digits',
  ),
  v.description('A full id, or its last 8 digits'),
)
/** A run by its id, or by its source. */
export const runRef = v.pipe(
  v.string(),
  v.check((text) => sourceMistake(text) === null, 'is not an id or a source'),
  v.description('A full id, its last 8 digits, or a source: its live run, else its last'),
)
/** A target by its full id, or a row of a table of targets by its own: there are too many to find one by its last digits. */
export const targetRef = v.pipe(
  v.string(),
  v.check(
    (text) => isId(text) || (!isIdEnding(text) && sourceMistake(text) === null),
    'goes by its full id, or by that of its row: `TABLE:ID`',
  ),
  v.description('A full id, or the id of a row of your own: `pages:17`, or `17`'),
)
export const source = v.pipe(
  v.string(),
  v.check((name) => sourceMistake(name) === null, 'is not the name of a source'),
)
/** 100 years: an age up to this is still a valid date. */
const DURATION_MAX_MS = 36_500 * 86_400_000
/** `30s`, `24h`: a bounded age. */
export const duration = v.pipe(
  v.string(),
  v.maxLength(20),
  v.check(
    (text) => (parseDuration(text) ?? Infinity) <= DURATION_MAX_MS,
    'is not a duration like 90s, 15m or 24h',
  ),
  v.description('Like 90s, 15m, 24h or 7d'),
)
export const text = v.pipe(
  v.string(),
  v.maxLength(TEXT_MAX),
  // No stored text contains one, and PostgreSQL rejects it.
  v.check((words) => !words.includes('\0'), 'has a NUL in it'),
)
export const because = v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(500)))
/** The body of every request that acknowledges has these fields. */
export const acknowledgeFields = {
  undo: v.optional(v.pipe(v.boolean(), v.description('Removes the mark')), false),
  because,
  dryRun: v.optional(v.boolean(), false),
}
/** A number in a body, within the range of the database's integers. */
export const wholeNumber = (from: number) =>
  v.pipe(v.number(), v.integer(), v.minValue(from), v.maxValue(INTEGER_MAX))
/** The length of a page. In a query every value is text. */
export const limit = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^\d{1,3}$/, 'is a whole number from 1 to 500'),
    v.transform(Number),
    v.minValue(1),
    v.maxValue(PAGE_MAX),
  ),
  '50',
)
export const after = v.optional(v.pipe(v.string(), v.maxLength(200)))
/** The position in a list that is sorted by id; with tables of your own, a position in each. */
export const afterId = v.optional(
  v.pipe(
    v.string(),
    v.regex(
      /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|sources\.[\w-]{1,4000})$/,
      'is the `next` of the last answer',
    ),
  ),
)
/** Accepts a parameter once or several times: `?status=failed&status=parked`. */
export const several = <T extends string>(of: v.BaseSchema<unknown, T, v.BaseIssue<unknown>>) =>
  v.optional(
    v.union([
      v.pipe(v.array(of), v.maxLength(50)),
      v.pipe(
        of,
        v.transform((one) => [one]),
      ),
    ]),
    [],
  )

/** Names what a preview showed: an action that carries it is refused when it would now do something else. */
export const plan = v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/, 'is the `plan` of a preview'))
