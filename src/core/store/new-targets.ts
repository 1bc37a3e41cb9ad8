import { messageOf, UsageError } from '../model/errors.ts'
import {
  BOOLEAN,
  mistakesIn,
  optional,
  describeValue,
  STRING,
  type Fields,
} from '../model/fields.ts'
import { LIMITS } from '../model/limits.ts'
import type { TargetInput } from '../model/target.ts'
import { cleanJson, isClean } from '../model/text.ts'

/** What `targets()` yielded, checked alike for both engines. */

/** Refuses targets that no store could keep apart, or give back as they are. */
export function checkTargets(targets: readonly TargetInput[]): void {
  for (const target of targets) {
    if (typeof target?.key !== 'string' || target.key === '') {
      throw new UsageError(
        `targets() yielded ${show(target)}: each target needs a key, a text that is not empty.`,
      )
    }
    const mistakes = [
      ...mistakesIn(target, TARGET, 'the target'),
      ...nameMistakes('key', target.key, LIMITS.targetKey),
      ...nameMistakes('group', target.group, LIMITS.group),
    ]
    if (typeof target.url === 'string' && Buffer.byteLength(target.url) > LIMITS.url)
      mistakes.push(`url is longer than ${LIMITS.url} bytes`)
    if (mistakes.length > 0) {
      const key = describeValue(target.key)
      throw new UsageError(
        `targets() yielded ${key}, which cannot be kept: ${mistakes.join('; ')}.`,
      )
    }
    serializeCursor(target)
    serializeData(target)
  }
}

const TARGET: Fields = {
  key: STRING,
  group: optional(STRING),
  url: optional(STRING),
  data: optional({ rule: 'any JSON', isValid: () => true }),
  cursor: optional({ rule: 'any JSON', isValid: () => true }),
  forefront: optional(BOOLEAN),
  done: optional(BOOLEAN),
}

/** Names are rejected and not cleaned: two of them must never become one. */
function nameMistakes(name: string, value: unknown, bytesMax: number): string[] {
  if (typeof value !== 'string') return []
  return [
    ...(isClean(value) ? [] : [`${name} has a NUL or a lone surrogate`]),
    ...(Buffer.byteLength(value) > bytesMax ? [`${name} is longer than ${bytesMax} bytes`] : []),
  ]
}

/** Returns the first cursor of a target as JSON; null if there is none. Throws for a value that is not JSON. */
export function serializeCursor({ key, cursor }: TargetInput): string | null {
  return serialize('cursor', key, cursor, LIMITS.cursor)
}

/** Returns a target's own data as text; null if it has none. */
export function serializeData({ key, data }: TargetInput): string | null {
  return serialize('data', key, data, LIMITS.targetData)
}

function serialize(what: string, key: string, value: unknown, bytesMax: number): string | null {
  if (value === undefined || value === null) return null
  const text = asJson(`The ${what} of target ${key}`, value)
  if (Buffer.byteLength(text) <= bytesMax) return cleanJson(text).json
  throw new UsageError(
    `The ${what} of target ${describeValue(key)} is larger than ${bytesMax / 1_024} KB. Keep it outside and give its place.`,
  )
}

/** Returns the JSON of a value. Throws a `UsageError` if there is none; `hint` ends its message. */
export function asJson(what: string, value: unknown, hint = ''): string {
  try {
    const text = JSON.stringify(value) as string | undefined
    if (text !== undefined) return text
  } catch (cause) {
    const [line] = messageOf(cause).split('\n', 1)
    throw new UsageError(`${what} is no JSON: ${line}.${hint}`, { cause })
  }
  throw new UsageError(`${what} is a ${typeof value}, which is no JSON.${hint}`)
}

function show(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? String(value)
    return text.length > 120 ? `${text.slice(0, 120)}…` : text
  } catch {
    return describeValue(value)
  }
}
