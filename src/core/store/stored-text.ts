import { hash } from 'node:crypto'
import { LIMITS } from '../model/limits.ts'
import { redact, redactNamed } from '../model/redact.ts'
import { cleanText, cutText } from '../model/text.ts'

/** A reason as it is stored: without secrets, of characters that both engines keep, and no longer than its limit. */
export function storedText(text: string, bytesMax: number = LIMITS.error): string {
  // Cut first, beyond the limit: a secret that the cut goes through falls to the second one.
  return cutText(cleanText(redact(cutText(text, LIMITS.message))), bytesMax)
}

/** The same for every text in a value. One that is larger than its limit becomes a summary of itself. */
export function storedJson(value: unknown, bytesMax: number = LIMITS.evidence): unknown {
  const json = JSON.stringify(value, (name, part: unknown) => storedPart(name, part, bytesMax)) as
    | string
    | undefined
  if (json === undefined) return null
  const bytes = Buffer.byteLength(json)
  if (bytes <= bytesMax) return JSON.parse(json)
  return {
    cut: true,
    bytes,
    sha256: hash('sha256', json),
    start: json.slice(0, START).toWellFormed(),
  }
}

/** Of the JSON of what was too large. A text of three-byte characters stays below the limit of a refused body. */
const START = 250

function storedPart(name: string, part: unknown, bytesMax: number): unknown {
  if (typeof part === 'string')
    return storedText(redactNamed(name, cutText(part, LIMITS.message)), bytesMax)
  if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
  return Object.fromEntries(
    Object.entries(part).map(([name, one]) => [storedText(name, LIMITS.listed), one]),
  )
}
