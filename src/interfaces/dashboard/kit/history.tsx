import { useState } from 'preact/hooks'
import { formatDuration, jsonText, plural, safe, shortId } from '../model/format.ts'
import { compareFields, type FieldChange } from '../model/history.ts'
import type { AuditEntry, Execution } from '../shapes.ts'
import { Button } from './button.tsx'
import { Evidence } from './changes.tsx'
import { CopyJson } from './copy.tsx'
import { Link } from './link.tsx'
import { Section } from './section.tsx'
import { StatusPill } from './status.tsx'
import { Age, asSentence, Text } from './text.tsx'

/** Entries of the audit trail: action, subject, actor, reason, and what changed. */
export function AuditList({ of }: { of: readonly AuditEntry[] }) {
  return (
    <ul class="list">
      {of.map((entry) => (
        <AuditRow key={entry.id} entry={entry} />
      ))}
    </ul>
  )
}

function AuditRow({ entry }: { entry: AuditEntry }) {
  const { at, actor, action, source, run, subject, because } = entry
  return (
    <li class="trail-row" data-row tabIndex={-1}>
      <div class="faint small">
        <Age at={at} />
      </div>
      <div>
        <div class="row">
          <StatusPill is={action} />
          <Link to={subjectPath(entry)} class="entry-what">
            <Text value={subject} />
          </Link>
          {run !== null && (
            <span>
              of <Text value={source} />
            </span>
          )}
          {isTarget(entry) && (
            <Link to={`/runs/${run}`} class="to-end small">
              run {shortId(run!)}
            </Link>
          )}
        </div>
        <p class="soft">
          <Text value={asSentence(because)} />
          {!because.endsWith(` by ${actor}`) && (
            <span class="faint">
              {' By '}
              <Text value={actor} />
            </span>
          )}
        </p>
        <EntryDetails entry={entry} />
      </div>
    </li>
  )
}

/** Before and after, field by field; the evidence and the whole entry below. */
function EntryDetails({ entry }: { entry: AuditEntry }) {
  const { changed, known } = compareFields(entry.before, entry.after)
  return (
    <details class="more-text">
      <summary>{changed.length === 0 ? 'Details' : <FieldChanges of={changed} />}</summary>
      {known.length > 0 && (
        <p>
          {changed.length > 0 && 'At that moment: '}
          {known.map(({ what, value }, index) => (
            <span key={what}>
              {index > 0 && ', '}
              {what} <Text value={value} mono />
            </span>
          ))}
        </p>
      )}
      {entry.evidence.length > 0 && (
        <p>
          <Text value={entry.evidence.join(' ')} />
        </p>
      )}
      <pre class="code">{jsonText({ before: entry.before, after: entry.after })}</pre>
      <CopyJson value={entry} />
    </details>
  )
}

function FieldChanges({ of }: { of: readonly FieldChange[] }) {
  return (
    <>
      {of.map(({ what, from, to }, index) => (
        <span key={what}>
          {index > 0 && ', '}
          {what !== 'status' && <span class="faint">{what} </span>}
          {from !== null && (
            <>
              <del>
                <Text value={from} />
              </del>
              <span aria-hidden="true"> → </span>
              <span class="visually-hidden"> becomes </span>
            </>
          )}
          <ins>{to === null ? '0' : <Text value={to} />}</ins>
        </span>
      ))}
    </>
  )
}

const ENTRIES_SHOWN = 8

/** The audit trail of a run and the executions of its command, newest first. */
export function Timeline(props: {
  audit: readonly AuditEntry[]
  executions: readonly Execution[]
  /** What was done to its source is not in the trail of a run. */
  isPaused?: boolean
}) {
  const [isWhole, setWhole] = useState(false)
  const all = [
    ...props.audit.map((entry) => ({
      at: entry.at,
      key: `action ${entry.id}`,
      isAction: true,
      content: <ActionEntry entry={entry} />,
    })),
    ...props.executions.flatMap((one) => [
      {
        at: one.startedAt,
        key: `start ${one.id}`,
        isAction: false,
        content: <ExecutionStart of={one} />,
      },
      ...(one.finishedAt === null
        ? []
        : [
            {
              at: one.finishedAt,
              key: `end ${one.id}`,
              isAction: false,
              content: <ExecutionEnd of={one} at={one.finishedAt} />,
            },
          ]),
    ]),
  ].toSorted((a, b) => b.at.localeCompare(a.at))
  const left = all.length - ENTRIES_SHOWN
  return (
    <Section title="What happened" note={plural(all.length, 'entry', 'entries')}>
      {all.length === 0 ? (
        <p class="pad faint">
          {props.isPaused
            ? 'No recovery, and no operator action but the pause of its source.'
            : 'No recovery, and no operator action.'}
        </p>
      ) : (
        <ol class="timeline">
          {all.slice(0, isWhole ? undefined : ENTRIES_SHOWN).map(({ key, isAction, content }) => (
            <li key={key} class={isAction ? 'is-action' : undefined}>
              {content}
            </li>
          ))}
        </ol>
      )}
      {left > 0 && !isWhole && (
        <div class="foot row">
          <span class="faint">{plural(left, 'older one')}</span>
          <Button size="small" onClick={() => setWhole(true)}>
            Show all
          </Button>
        </div>
      )}
    </Section>
  )
}

function ActionEntry({ entry }: { entry: AuditEntry }) {
  const { action, target, key, at, because, actor, evidence, before, after } = entry
  const { changed } = compareFields(before, after)
  return (
    <>
      <p class="row">
        <strong>{safe(action)}</strong>
        {target !== null && key && (
          <Link to={`/targets/${target}`}>
            <bdi>{safe(key)}</bdi>
          </Link>
        )}
        <Age at={at} />
      </p>
      <p>{safe(because)}</p>
      {changed.length > 0 && (
        <p class="soft">
          <FieldChanges of={changed} />
        </p>
      )}
      {!because.endsWith(` by ${actor}`) && <p class="faint">by {safe(actor)}</p>}
      <Evidence of={evidence} />
    </>
  )
}

function ExecutionStart({ of: { id, host, startedAt } }: { of: Execution }) {
  return (
    <>
      <p class="row">
        <strong>command started</strong> <Age at={startedAt} />
      </p>
      <p class="faint">
        on {safe(host)}, as {shortId(id)}
      </p>
    </>
  )
}

function ExecutionEnd({ of, at }: { of: Execution; at: string }) {
  const { startedAt, exitCode, signal, because } = of
  const how = signal ? `by ${signal}` : exitCode === null ? '' : `with code ${exitCode}`
  return (
    <>
      <p class="row">
        <strong>command ended {how}</strong> <Age at={at} />
      </p>
      <p>
        {because && `${safe(because)} `}
        <span class="faint">after {formatDuration(startedAt, at)}</span>
      </p>
    </>
  )
}

/** What was done to a source itself has neither a run nor a target; a row that is a run has a target of its own. */
function subjectPath(entry: AuditEntry): string {
  const { source, run, target } = entry
  if (isTarget(entry)) return `/targets/${target}`
  return run === null ? `/runs?source=${encodeURIComponent(source)}` : `/runs/${run}`
}

function isTarget({ run, target, subject }: AuditEntry): boolean {
  return run !== null && target !== null && !subject.startsWith('run ')
}
