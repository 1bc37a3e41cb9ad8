import { formatAge, formatNumber, formatTimes, linkable, safe } from '../model/format.ts'
import { Icon } from './icon.tsx'
import { useCallback } from 'preact/hooks'
import { useTimeText } from '../clock.ts'
import type { Target } from '../shapes.ts'

/**
 * Text that came from outside (a key, a url, an error, a name): kept apart from the direction of the text around it,
 * control characters made visible, and wrapped or, with `clip`, cut to one line. The whole is in the title then.
 */
export function Text({ value, clip, mono }: { value: string; clip?: boolean; mono?: boolean }) {
  const shown = safe(value)
  const kinds = ['text', clip && 'text-clip', mono && 'mono'].filter(Boolean).join(' ')
  return (
    <bdi class={kinds} title={clip ? shown : undefined}>
      {shown}
    </bdi>
  )
}

/** The last saved page of a target, with the number of pages if it is known: `3 / 12`. */
export function PageNumber({
  of: { page, pageTarget },
}: {
  of: Pick<Target, 'page' | 'pageTarget'>
}) {
  return (
    <>
      {formatNumber(page)}
      {pageTarget !== null && <span class="faint"> / {formatNumber(pageTarget)}</span>}
    </>
  )
}

/** An address from outside: a link if it is http(s), else only text. */
export function OutsideLink({ url, clip }: { url: string; clip?: boolean }) {
  const href = linkable(url)
  if (href === null) return <Text value={url} clip={clip ?? false} mono />
  return (
    <a class="row" href={href} target="_blank" rel="noopener noreferrer">
      <Text value={url} clip={clip ?? false} mono />
      <Icon name="external" size={12} />
      <span class="visually-hidden">(opens another site)</span>
    </a>
  )
}

/** A sentence of ours, in which commands stand between backticks. */
export function Prose({ text }: { text: string }) {
  // Every second part was between two of them; a lone one at the end opens nothing.
  const parts = safe(text).split('`')
  if (parts.length % 2 === 0) return <>{safe(text)}</>
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>
}

/** How long ago, counting on. The moment itself, local and UTC, is in the title. */
export function Age({ at, none = '–' }: { at: string | null; none?: string }) {
  const moment = at === null ? null : Date.parse(at)
  const words = useTimeText(
    useCallback((now) => (moment === null ? none : formatAge(moment, now)), [moment, none]),
  )
  if (at === null || moment === null) return <span class="faint">{none}</span>
  return (
    <time class="age" dateTime={at} title={formatTimes(moment)}>
      {words}
    </time>
  )
}

type ProcessRef = {
  readonly label: string | null
  /** Null: with a label alone. */
  readonly host: string | null
  readonly pid: number | null
}

/** A process on a host, or what a table of the user's own calls it. */
export function WorkerName({ is: { label, host, pid } }: { is: ProcessRef }) {
  if (label !== null || host === null) return <>{safe(label ?? 'unknown')}</>
  return (
    <>
      {safe(host)}, process <span class="mono">{pid}</span>
    </>
  )
}

/** A reason as it stands in a verdict, written as a sentence. */
export function asSentence(reason: string): string {
  const begun = reason.charAt(0).toUpperCase() + reason.slice(1)
  return begun === '' || /[.!?]$/.test(begun) ? begun : `${begun}.`
}
