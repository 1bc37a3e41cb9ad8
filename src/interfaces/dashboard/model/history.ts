import type { AuditEntry, Execution } from '../shapes.ts'

/** What happened to a run, one after the other: deeds from the audit trail and the executions of a wrapped command. */
export type TimelineEvent =
  | {
      readonly kind: 'deed'
      readonly at: string
      readonly entry: AuditEntry & { key?: string | null }
    }
  | { readonly kind: 'began' | 'ended'; readonly at: string; readonly execution: Execution }

/** Newest first. */
export function timelineEvents(
  audit: readonly (AuditEntry & { key?: string | null })[],
  executions: readonly Execution[],
): TimelineEvent[] {
  const all: TimelineEvent[] = [
    ...audit.map((entry) => ({ kind: 'deed' as const, at: entry.at, entry })),
    ...executions.flatMap((execution): TimelineEvent[] => [
      { kind: 'began', at: execution.startedAt, execution },
      ...(execution.finishedAt === null
        ? []
        : [{ kind: 'ended' as const, at: execution.finishedAt, execution }]),
    ]),
  ]
  return all.toSorted((a, b) => b.at.localeCompare(a.at))
}
