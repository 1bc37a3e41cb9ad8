import { safe } from '../model/safe.ts'

/** A sentence of ours, in which commands stand between backticks. */
export function Prose({ text }: { text: string }) {
  // Every second part was between two of them; a lone one at the end opens nothing.
  const parts = safe(text).split('`')
  if (parts.length % 2 === 0) return <>{safe(text)}</>
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>
}
