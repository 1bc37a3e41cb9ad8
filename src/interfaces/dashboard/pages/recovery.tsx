import { useEffect, useMemo } from 'preact/hooks'
import { changesOf } from '../kit/action-state.ts'
import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { Changes, Evidence, Processes } from '../kit/changes.tsx'
import { Chart } from '../kit/chart.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { AuditList } from '../kit/history.tsx'
import { Link } from '../kit/link.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { StatusPill, Totals } from '../kit/status.tsx'
import { Age, asSentence, Prose, Text } from '../kit/text.tsx'
import { useLiveEvents } from '../live.ts'
import { formatKnown, formatNumber, formatRow, plural, runId } from '../model/format.ts'
import { isRecovery } from '../model/history.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import type {
  AllowedAction,
  AssessedRun,
  AuditEntry,
  Cleaning,
  History,
  Recovery as Plan,
  Series,
} from '../shapes.ts'

const REFRESH_MS = 5_000

/** What recovery would apply now, with reasons; the same as `unstuck recover --dry-run`. */
export function Recovery() {
  const plan = useResource<Plan>('/api/recovery', { refreshMs: REFRESH_MS })
  const cleaning = useResource<Cleaning>('/api/clean', { refreshMs: 2 * REFRESH_MS })
  const reload = () => {
    plan.reload()
    cleaning.reload()
  }
  const completedActions = useCompletedActions()
  useEffect(() => {
    if (completedActions > 0) reload()
  }, [completedActions])
  useLiveEvents('trail', reload)

  const { data } = plan
  const { kept, moreKept } = data ? changesOf(data) : { kept: [], moreKept: 0 }
  return (
    <>
      <PageHead
        title="Recovery"
        actions={
          <ActionButtons actions={[...(cleaning.data?.actions ?? []), ...(data?.actions ?? [])]} />
        }
      >
        {data && <Prose text={data.summary} />}
      </PageHead>

      <Section
        title="Would be applied"
        note={data && data.count > 0 ? plural(data.count, 'verdict') : undefined}
      >
        <Loaded of={plan} lines={5}>
          {(recovery) => {
            const { changes, more } = changesOf(recovery)
            return changes.length + recovery.processes.length > 0 ? (
              <>
                <Changes of={changes} more={more} isUnfolded />
                <Processes of={recovery.processes} />
              </>
            ) : (
              <Empty title="Nothing to recover.">
                No dead worker holds a target. A worker that dies is noticed within about a second
                where a worker, a command or this server runs.
              </Empty>
            )
          }}
        </Loaded>
        {data && (
          <div class="foot">
            <CopyCommand
              command="unstuck recover --dry-run"
              call={{ method: 'GET', path: apiUrl('/api/recovery') }}
            />
          </div>
        )}
      </Section>

      {kept.length + moreKept > 0 && (
        <Section title="Needs a decision" note="recovery does not decide these by itself">
          <Changes of={kept} more={moreKept} isUnfolded />
        </Section>
      )}

      <Loaded of={cleaning} lines={4}>
        {({ resumable, dead }) => (
          <div class="columns">
            <Section title="Resumable" note={plural(resumable.length, 'run')}>
              {resumable.length === 0 ? (
                <Empty title="No run waits to be continued." icon="play" />
              ) : (
                <AssessedRuns of={resumable} />
              )}
            </Section>
            <Section title="Dead" note={plural(dead.length, 'run')}>
              {dead.length === 0 ? (
                <Empty title="No run is dead.">
                  A run is dead if no worker has it, it is old, and it has no progress to continue
                  from.
                </Empty>
              ) : (
                <AssessedRuns of={dead} />
              )}
            </Section>
          </div>
        )}
      </Loaded>
      <RecoveryChart />
      <LastRecoveries />
    </>
  )
}

function AssessedRuns({
  of,
}: {
  of: readonly (AssessedRun & { actions?: readonly AllowedAction[] })[]
}) {
  return (
    <ul class="list">
      {of.map(({ id, source, status, origin, actions = [], ...run }) => (
        <li key={id} class="entry" data-row tabIndex={-1}>
          <div class="row">
            <StatusPill is={status} />
            <Link to={`/runs/${id}`} class="entry-what">
              <Text value={source} />
            </Link>
            <span class="faint mono small">{runId({ id, origin })}</span>
            {origin && (
              <span class="faint small">
                <Text value={formatRow(origin)} />
              </span>
            )}
            <span class="to-end">
              <ActionButtons actions={actions} size="small" />
            </span>
          </div>
          <p class="soft">
            <Text value={asSentence(run.because)} />
          </p>
          <p class="faint small">
            {formatKnown(run.done)} of {formatKnown(run.total)} done
            {run.checkpoint && `, ${formatSaved(run.checkpoint.page)}`} · last change{' '}
            <Age at={run.lastActivityAt} />
          </p>
          <Evidence of={run.evidence} />
        </li>
      ))}
    </ul>
  )
}

/** A checkpoint may have no page, such as that of a file. */
function formatSaved(page: number): string {
  return page > 0 ? `saved up to page ${formatNumber(page)}` : 'with a checkpoint'
}

function RecoveryChart() {
  const { data } = useResource<Series>('/api/series?since=24h', { refreshMs: 60_000 })
  const points = useMemo(
    () => data?.points.map(({ at, recoveries }) => ({ at, value: recoveries })) ?? [],
    [data],
  )
  if (!data || points.length === 0) return null
  const minutes = data.stepSeconds / 60
  const step = Number.isInteger(minutes)
    ? `${minutes === 1 ? '' : `${minutes} `}min`
    : `${data.stepSeconds} s`
  return (
    <Section title="The last 24 hours">
      <Chart label="Recoveries" unit={`per ${step}`} kind="bars" points={points} height={120} />
    </Section>
  )
}

const ENTRIES_SHOWN = 8

/** The recoveries of the last days: how often each action was applied, and the newest ones. */
function LastRecoveries() {
  const history = useResource<History>('/api/history?since=7d&limit=200')
  useLiveEvents<AuditEntry>('trail', () => history.reload())
  return (
    <Section
      title="Last recoveries"
      note="7 days"
      aside={<Link to="/history?since=7d">All of the history</Link>}
    >
      <Loaded of={history}>
        {({ counts, items }) => {
          const entries = items.filter(isRecovery)
          if (entries.length === 0)
            return <Empty title="Nothing had to be recovered in the last 7 days." />
          const totals = new Map<string, number>()
          for (const { action, count } of counts.filter(isRecovery))
            totals.set(action, (totals.get(action) ?? 0) + count)
          return (
            <>
              <Totals of={[...totals]} to="/history?since=7d&action=*" />
              <AuditList of={entries.slice(0, ENTRIES_SHOWN)} />
            </>
          )
        }}
      </Loaded>
    </Section>
  )
}
