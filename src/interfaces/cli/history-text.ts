import { shortId } from '../../core/model/id.ts'
import type { Millis } from '../../core/model/time.ts'
import type { AuditEntry } from '../../core/store/store.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import { formatAgo } from '../../presenters/format.ts'

/** One entry of the audit trail: when, what to what, by whom and why. `about`: what the reader does not know yet. */
export function printAuditEntry(
  writer: TextWriter,
  entry: AuditEntry,
  now: Millis,
  about: string,
): void {
  const { at, action } = entry
  writer.paragraph(
    '- ',
    { text: `${formatAgo(at, now)}:`, style: 'dim' },
    ' ',
    { text: action, style: 'strong' },
    `${about && ` ${about}`}${formatMove(entry)}${formatActorAndReason(entry)}.`,
  )
}

/** `target 91bc4f2a of run 4f2a91bc`, as far as it is about one. */
export function describeSubject({ run, target }: AuditEntry): string {
  return target === null
    ? `run ${shortId(run)}`
    : `target ${shortId(target)} of run ${shortId(run)}`
}

function formatMove({ before, after }: AuditEntry): string {
  const [from, to] = [before, after].map((side) =>
    (side as { status?: string } | null)?.status?.replace('_', ' '),
  )
  return from && to && from !== to ? ` (${from} → ${to})` : ''
}

/** Where the reason only says who did it, that is said once. */
function formatActorAndReason({ actor, because }: AuditEntry): string {
  return because.endsWith(` by ${actor}`) ? `: ${because}` : `, by ${actor}: ${because}`
}
