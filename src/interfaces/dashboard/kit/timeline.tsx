import { useState } from 'preact/hooks'
import { Age } from './text.tsx'
import { Button } from './button.tsx'
import { compareFields } from './change.ts'
import { Link } from './link.tsx'
import { Section } from './section.tsx'
import { formatDuration, plural, safe, shortId } from '../model/format.ts'
import type { AuditEntry, Execution } from '../shapes.ts'

const SHOWN = 8

type Entry = AuditEntry & { key?: string | null }

/** The audit trail of a run and the executions of its command, newest first. */
export function Timeline(props: { audit: readonly Entry[]; executions: readonly Execution[] }) {
  const [isWhole, setWhole] = useState(false)
  const all = timelineEvents(props.audit, props.executions)
  const shown = isWhole ? all : all.slice(0, SHOWN)
  return (
    <Section title="What happened" note={plural(all.length, 'entry', 'entries')}>
      {all.length === 0 ? (
        <p class="pad faint">No recovery, and no operator action.</p>
      ) : (
        <ol class="timeline">
          {shown.map((happening) => (
            <li key={keyOf(happening)} class={`timeline-entry timeline-${happening.kind}`}>
              {happening.kind === 'deed' ? (
                <AuditRow entry={happening.entry} />
              ) : (
                <ExecutionRow kind={happening.kind} execution={happening.execution} />
              )}
            </li>
          ))}
        </ol>
      )}
      {all.length > shown.length && (
        <div class="more">
          <span class="faint">{plural(all.length - shown.length, 'older one')}</span>
          <Button size="small" onClick={() => setWhole(true)}>
            Show all
          </Button>
        </div>
      )}
    </Section>
  )
}

function keyOf(happening: TimelineEvent): string {
  return happening.kind === 'deed'
    ? `deed ${happening.entry.id}`
    : `${happening.kind} ${happening.execution.id}`
}

function AuditRow({ entry }: { entry: Entry }) {
  const { changed } = compareFields(entry.before, entry.after)
  const { evidence } = entry
  return (
    <>
      <p class="timeline-head">
        <strong>{safe(entry.action)}</strong>
        {entry.target !== null && entry.key && (
          <Link to={`/targets/${entry.target}`}>
            <bdi>{safe(entry.key)}</bdi>
          </Link>
        )}
        <Age at={entry.at} />
      </p>
      <p>{safe(entry.because)}</p>
      {changed.length > 0 && (
        <p class="row soft">
          {changed.map(({ what, from, to }) => (
            <span key={what}>
              {what} {from !== null && <s>{safe(from)}</s>} → {safe(to ?? 'none')}
            </span>
          ))}
        </p>
      )}
      <p class="faint">by {safe(entry.actor)}</p>
      {evidence.length > 0 && (
        <details>
          <summary class="faint">Evidence</summary>
          <ul class="plain-list">
            {evidence.map((sentence) => (
              <li key={sentence}>{safe(sentence)}</li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

function ExecutionRow({ kind, execution }: { kind: 'began' | 'ended'; execution: Execution }) {
  const { startedAt, finishedAt, exitCode, signal, because, host } = execution
  if (kind === 'began') {
    return (
      <>
        <p class="timeline-head">
          <strong>command started</strong> <Age at={startedAt} />
        </p>
        <p class="faint">
          on {safe(host)}, as {shortId(execution.id)}
        </p>
      </>
    )
  }
  const how = signal ? `by ${signal}` : exitCode === null ? '' : `with code ${exitCode}`
  return (
    <>
      <p class="timeline-head">
        <strong>command ended {how}</strong> <Age at={finishedAt} />
      </p>
      <p>
        {because && `${safe(because)} `}
        <span class="faint">after {formatDuration(startedAt, finishedAt!)}</span>
      </p>
    </>
  )
}

/** What happened to a run, one after the other: deeds from the audit trail and the executions of a wrapped command. */
type TimelineEvent =
  | {
      readonly kind: 'deed'
      readonly at: string
      readonly entry: AuditEntry & { key?: string | null }
    }
  | { readonly kind: 'began' | 'ended'; readonly at: string; readonly execution: Execution }

/** Newest first. */
function timelineEvents(
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
