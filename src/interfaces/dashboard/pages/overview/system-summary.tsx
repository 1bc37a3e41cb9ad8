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
          <ul class="tally">
            {livenessCounts.map((liveness) => (
              <li key={liveness}>
                <Link to={`/workers?liveness=${liveness}`} class="tally-count">
                  {formatNumber(workers[liveness] ?? 0)}
                </Link>
                <StatusPill is={liveness} />
              </li>
            ))}
          </ul>
        )}
      </Section>
      {sourceLocks.length > 0 && (
        <Section title="Wrapped commands">
          <ul class="commands">
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
          <ul class="tally">
            {statuses.map((status) => (
              <li key={status}>
                <Link to={`/runs?status=${status}`} class="tally-count">
                  {formatNumber(totals[status] ?? 0)}
                </Link>
                <StatusPill is={status} />
              </li>
            ))}
          </ul>
        )}
      </Section>
    </div>
  )
}

function Command({ command }: { command: Overview['sourceLocks'][number] }) {
  const { source, gaveUp, endingSince, since, worker } = command
  return (
    <li>
      <Link to={`/runs?source=${encodeURIComponent(source)}`} class="row-link">
        {safe(source)}
      </Link>
      {gaveUp ? (
        <>
          <Pill tone="bad" icon="stop" label="given up" />
          <span class="commands-why">
            <Age at={gaveUp.at} />: {safe(gaveUp.because)}
          </span>
        </>
      ) : endingSince ? (
        <>
          <Pill tone="warn" icon="clock" label="being ended" />
          <span class="commands-why">
            since <Age at={endingSince} />
          </span>
        </>
      ) : (
        <>
          <Pill tone="good" icon="pulse" label={worker === null ? 'between runs' : 'watched'} />
          <span class="commands-why">
            since <Age at={since} />
          </span>
        </>
      )}
    </li>
  )
}
