import { Age } from '../../kit/age.tsx'
import { Link } from '../../kit/link.tsx'
import { Section } from '../../kit/section.tsx'
import { Pill, StatusPill } from '../../kit/status.tsx'
import { safe } from '../../model/safe.ts'
import { formatNumber } from '../../model/format.ts'
import type { Overview, RunStatus, Liveness } from '../../shapes.ts'

const LIVENESS_ORDER: readonly Liveness[] = ['present', 'stalled', 'silent', 'gone', 'unknown']
const STATUSES: readonly RunStatus[] = [
  'running',
  'queued',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
]

/** Around the live runs: the workers by their signs of life, wrapped commands, and all runs ever. */
export function SystemSummary({ overview }: { overview: Overview }) {
  const { workers, totals, sourceLocks } = overview
  const livenessCounts = LIVENESS_ORDER.filter((liveness) => (workers[liveness] ?? 0) > 0)
  const statuses = STATUSES.filter((status) => (totals[status] ?? 0) > 0)
  return (
    <div class="columns">
      <Section title="Workers" aside={<Link to="/workers">All workers</Link>}>
        {livenessCounts.length === 0 ? (
          <p class="pad faint">No worker is there.</p>
        ) : (
          <Tally of={livenessCounts} counts={workers} to="/workers?liveness=" />
        )}
      </Section>
      {sourceLocks.length > 0 && (
        <Section title="Wrapped commands">
          <ul class="list">
            {sourceLocks.map((command) => (
              <Command key={command.source} command={command} />
            ))}
          </ul>
        </Section>
      )}
      <Section title="All runs" aside={<Link to="/runs">All runs</Link>}>
        {statuses.length === 0 ? (
          <p class="pad faint">None yet.</p>
        ) : (
          <Tally of={statuses} counts={totals} to="/runs?status=" />
        )}
      </Section>
    </div>
  )
}

function Tally(props: {
  of: readonly (Liveness | RunStatus)[]
  counts: Readonly<Record<string, number>>
  to: string
}) {
  return (
    <ul class="tally">
      {props.of.map((state) => (
        <li key={state}>
          <Link to={props.to + state} class="tally-count">
            {formatNumber(props.counts[state] ?? 0)}
          </Link>
          <StatusPill is={state} />
        </li>
      ))}
    </ul>
  )
}

function Command({ command }: { command: Overview['sourceLocks'][number] }) {
  const { source, gaveUp, endingSince, since, worker } = command
  const pill = gaveUp ? (
    <Pill tone="bad" icon="stop" label="given up" />
  ) : endingSince ? (
    <Pill tone="warn" icon="clock" label="being ended" />
  ) : (
    <Pill tone="good" icon="pulse" label={worker === null ? 'between runs' : 'watched'} />
  )
  return (
    <li class="row">
      <Link to={`/runs?source=${encodeURIComponent(source)}`} class="row-link">
        {safe(source)}
      </Link>
      {pill}
      <span class="soft small">
        since <Age at={gaveUp?.at ?? endingSince ?? since} />
        {gaveUp && `: ${safe(gaveUp.because)}`}
      </span>
    </li>
  )
}
