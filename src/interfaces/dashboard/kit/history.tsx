import { jsonText, shortId } from '../model/format.ts'
import type { AuditEntry } from '../shapes.ts'
import { Age, sentence, Text } from './text.tsx'
import { compareFields, type FieldChange } from './change.ts'
import { CopyJson } from './copy.tsx'
import { Link } from './link.tsx'
import { actionStyle, Pill } from './status.tsx'

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
  const { at, actor, action, source, run, target, because } = entry
  const row = entry.facts?.['label']
  const { label, icon, tone } = actionStyle(action)
  const isReasonActor = because.endsWith(` by ${actor}`)
  return (
    <li class="trail-row" data-row tabIndex={-1}>
      <div class="trail-when">
        <Age at={at} />
      </div>
      <div class="trail-what">
        <div class="row">
          <Pill tone={tone} icon={icon} label={label} />
          <Link to={target === null ? `/runs/${run}` : `/targets/${target}`} class="entry-what">
            {typeof row === 'string' ? (
              <Text value={row} />
            ) : (
              `${target === null ? 'run' : 'target'} ${shortId(target ?? run)}`
            )}
          </Link>
          <span>
            of <Text value={source} />
          </span>
          {target !== null && (
            <Link to={`/runs/${run}`} class="to-end small">
              run {shortId(run)}
            </Link>
          )}
        </div>
        <p class="entry-because">
          <Text value={sentence(because)} />
          {!isReasonActor && (
            <span class="faint">
              {' By '}
              <Text value={actor} />
            </span>
          )}
        </p>
        <Diff entry={entry} />
      </div>
    </li>
  )
}

/** Before and after, field by field; the evidence and the whole entry below. */
function Diff({ entry }: { entry: AuditEntry }) {
  const { changed, known } = compareFields(entry.before, entry.after)
  return (
    <details class="more-text trail-changes">
      <summary>
        {changed.length === 0 ? 'Nothing moved' : null}
        {changed.map((change, index) => (
          <span key={change.what}>
            {index > 0 && ', '}
            <FieldChangeRow of={change} />
          </span>
        ))}
      </summary>
      {known.length > 0 && (
        <p class="soft">
          At that moment:{' '}
          {known.map(({ what, value }, index) => (
            <span key={what}>
              {index > 0 && ', '}
              {what} <Text value={value} mono />
            </span>
          ))}
        </p>
      )}
      {entry.evidence.length > 0 && (
        <p class="soft">
          <Text value={entry.evidence.join(' ')} />
        </p>
      )}
      <pre class="code">{jsonText({ before: entry.before, after: entry.after })}</pre>
      <CopyJson value={entry} />
    </details>
  )
}

function FieldChangeRow({ of: { what, from, to } }: { of: FieldChange }) {
  return (
    <>
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
    </>
  )
}
