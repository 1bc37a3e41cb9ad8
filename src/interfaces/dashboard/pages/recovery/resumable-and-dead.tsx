import { ActionButtons } from '../../kit/action-host.tsx'
import { Age } from '../../kit/age.tsx'
import { Link } from '../../kit/link.tsx'
import { Section } from '../../kit/section.tsx'
import { sentence } from '../../kit/sentence.ts'
import { Empty } from '../../kit/states.tsx'
import { StatusPill } from '../../kit/status.tsx'
import { Text } from '../../kit/text.tsx'
import { plural, formatNumber, formatRow, shortId } from '../../model/format.ts'
import type { AllowedAction, AssessedRun, Cleaning } from '../../shapes.ts'

/** Side by side: runs that are kept because they can continue, and dead ones that cannot. */
export function ResumableAndDead({ of: { resumable, dead } }: { of: Cleaning }) {
  return (
    <div class="columns">
      <Section title="Resumable" note={plural(resumable.length, 'run')}>
        {resumable.length === 0 ? (
          <Empty title="No run waits to be continued." icon="play" />
        ) : (
          <ul class="list">
            {resumable.map((run) => (
              <AssessedRunRow key={run.id} run={run} />
            ))}
          </ul>
        )}
      </Section>
      <Section title="Dead" note={plural(dead.length, 'run')}>
        {dead.length === 0 ? (
          <Empty title="No run is dead.">
            A run is dead if no worker has it, it is old, and it has no progress to continue from.
          </Empty>
        ) : (
          <ul class="list">
            {dead.map((run) => (
              <AssessedRunRow key={run.id} run={run} actions={run.actions} />
            ))}
          </ul>
        )}
      </Section>
    </div>
  )
}

function AssessedRunRow(props: { run: AssessedRun; actions?: readonly AllowedAction[] }) {
  const { run, actions = [] } = props
  const { id, source, status, because, done, total, checkpoint, lastActivityAt, adopted } = run
  return (
    <li class="entry" data-row tabIndex={-1}>
      <div class="row">
        <StatusPill is={status} />
        <Link to={`/runs/${id}`} class="entry-what">
          <Text value={source} />
        </Link>
        <span class="faint mono small">{shortId(id)}</span>
        {adopted && (
          <span class="faint small">
            <Text value={formatRow(adopted)} />
          </span>
        )}
        <span class="to-end">
          <ActionButtons actions={actions} size="small" />
        </span>
      </div>
      <p class="entry-because">
        <Text value={sentence(because)} />
      </p>
      <p class="faint small">
        {formatNumber(done)} of {formatNumber(total)} done
        {checkpoint && `, ${formatSaved(checkpoint.page)}`} · last change{' '}
        <Age at={lastActivityAt} />
      </p>
      <details class="more-text">
        <summary>The evidence</summary>
        <p>
          <Text value={run.evidence.join(' ')} />
        </p>
      </details>
    </li>
  )
}

/** What is saved without pages, such as a file, is a checkpoint too. */
function formatSaved(page: number): string {
  return page > 0 ? `saved up to page ${formatNumber(page)}` : 'with a checkpoint'
}
