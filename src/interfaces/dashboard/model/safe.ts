import { safeJson, safeText } from '../../../core/events/safe-text.ts'

/** Scraped text as it may be shown: control and direction characters become visible escapes, lines stay lines. */
export function safe(text: string): string {
  return text
    .split(/\r\n|[\n\r]/)
    .map(safeText)
    .join('\n')
}

/** A value as JSON for people: indented, and as harmless as `safe`. */
export function jsonText(value: unknown): string {
  return safeJson(value, 2)
}

/** The address as a link may have it, or null: nothing but http(s) is ever clickable. */
export function linkable(text: string | null): string | null {
  if (text === null || !URL.canParse(text)) return null
  const { protocol } = new URL(text)
  return protocol === 'http:' || protocol === 'https:' ? text : null
}
