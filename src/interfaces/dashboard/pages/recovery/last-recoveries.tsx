import { useMemo } from 'preact/hooks'
import { Chart } from '../../kit/chart.tsx'
import { Link } from '../../kit/link.tsx'
import { Section } from '../../kit/section.tsx'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Pill } from '../../kit/status.tsx'
import { AuditList } from '../../kit/history.tsx'
import { actionStyle } from '../../kit/verdict-style.ts'
import { useLiveEvents } from '../../live.ts'
import { formatNumber } from '../../model/format.ts'
import { useResource } from '../../resource.ts'
import type { AuditEntry, Series } from '../../shapes.ts'
import { isRecovery, type HistoryAnswer } from '../history/shape.ts'

const SHOWN = 8

/** What was recovered in the last days: how often, when, and the newest ones. */
export function LastRecoveries() {
  const history = useResource<HistoryAnswer>('/api/history?since=7d&limit=200')
  const series = useResource<Series>('/api/series?since=24h', { refreshMs: 60_000 })
  useLiveEvents<AuditEntry>('trail', () => history.reload())
  const points = useMemo(
    () => series.data?.points.map(({ at, recoveries }) => ({ at, value: recoveries })) ?? [],
    [series.data],
  )
  return (
    <>
      {points.length > 0 && (
        <Section title="The last 24 hours">
          <Chart
            label="Recoveries"
            unit={`per ${formatStep(series.data!.stepSeconds)}`}
            kind="bars"
            points={points}
            height={120}
          />
        </Section>
      )}
      <Section
        title="Last recoveries"
        note="7 days"
        aside={<Link to="/history?since=7d">All of the history</Link>}
      >
        <Loaded of={history}>
          {({ counts, items }) => {
            const done = items.filter(isRecovery)
            return done.length === 0 ? (
              <Empty title="Nothing had to be recovered in the last 7 days." />
            ) : (
              <>
                <Totals of={counts.filter(isRecovery)} />
                <AuditList of={done.slice(0, SHOWN)} />
              </>
            )
          }}
        </Loaded>
      </Section>
    </>
  )
}

/** How often which action; each leads to its entries. */
function Totals({ of }: { of: HistoryAnswer['counts'] }) {
  const totals = new Map<string, number>()
  for (const { action, count } of of) totals.set(action, (totals.get(action) ?? 0) + count)
  return (
    <ul class="tally">
      {[...totals].map(([action, count]) => {
        const { label, icon, tone } = actionStyle(action)
        return (
          <li key={action}>
            <Link to={`/history?since=7d&action=${encodeURIComponent(action)}`} class="tally-count">
              {formatNumber(count)}
            </Link>
            <Pill tone={tone} icon={icon} label={label} />
          </li>
        )
      })}
    </ul>
  )
}

function formatStep(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds === 60 ? '' : `${seconds / 60} `}min` : `${seconds} s`
}
