import { Age } from '../../kit/age.tsx'
import { CountLink, Link } from '../../kit/link.tsx'
import { Progress } from '../../kit/progress.tsx'
import { toneOf } from '../../kit/run-cells.tsx'
import { Facts, Section } from '../../kit/section.tsx'
import { StatusPill } from '../../kit/status.tsx'
import { WorkerName } from '../../kit/worker-name.tsx'
import { isRow } from '../../model/format.ts'
import { safe } from '../../model/safe.ts'
import { formatEta, formatNumber, shortId } from '../../model/format.ts'
import type { RunDetail, TargetStatus } from '../../shapes.ts'

const STATUSES: readonly TargetStatus[] = [
  'planned',
  'in_progress',
  'done',
  'failed',
  'stuck',
  'parked',
]

/** How far it is: one big bar, the targets by status (each number leads to them), and the figures. */
export function RunNumbers({ detail: { run, counts, owner } }: { detail: RunDetail }) {
  const given = run.kind === 'crawl' ? counts.failed + counts.stuck + counts.parked : 0
  const eta = formatEta(run.pace?.etaSeconds)
  return (
    <Section title="Progress" note={eta && `${eta} left`}>
      <div class="pad stack">
        <Progress
          label="Progress of this run"
          size="large"
          done={run.done}
          total={run.total}
          bad={given}
          isTotalKnown={run.planned}
          tone={toneOf(run)}
        />
        {!isRow(run) && (
          <ul class="tally tally-flat">
            {STATUSES.filter((status) => counts[status] > 0).map((status) => (
              <li key={status}>
                <span class="tally-count">
                  <CountLink
                    count={counts[status]}
                    to={`/runs/${run.id}?status=${status}#targets`}
                  />
                </span>
                <StatusPill is={status} />
              </li>
            ))}
          </ul>
        )}
        <Facts
          of={[
            ['Pages', formatNumber(run.pages)],
            [
              'Pages per minute',
              run.pace ? formatNumber(Math.round(run.pace.pagesPerMinute)) : '–',
            ],
            ['Items', formatNumber(run.extracted)],
            ['Skipped', formatNumber(run.skipped)],
            ['Last progress', <Age at={run.lastActivityAt} />],
            ['Started', <Age at={run.startedAt} none="not yet" />],
            [
              'Held by',
              owner ? (
                <Link to="/workers">
                  <WorkerName is={owner} />
                </Link>
              ) : run.owner ? (
                <span class="mono">{shortId(run.owner.worker)}</span>
              ) : run.adopted ? (
                'no known owner'
              ) : (
                'no owner'
              ),
            ],
          ]}
        />
        {run.error && <p class="run-error">{safe(run.error)}</p>}
      </div>
    </Section>
  )
}
