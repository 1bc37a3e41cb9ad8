import { useEffect, useMemo } from 'preact/hooks'
import { resultOfRecovery } from '../kit/action-result.ts'
import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { ChangesList } from '../kit/changes-list.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { useLiveEvents } from '../live.ts'
import { formatNumber, formatRow, plural, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import type {
  History,
  AllowedAction,
  AssessedRun,
  AuditEntry,
  Cleaning,
  Recovery as Plan,
  Series,
} from '../shapes.ts'
import { Age, sentence, Text } from '../kit/text.tsx'
import { Link } from '../kit/link.tsx'
import { actionStyle, Pill, StatusPill } from '../kit/status.tsx'
import { Chart } from '../kit/chart.tsx'
import { AuditList } from '../kit/history.tsx'
import { isRecovery } from '../model/history.ts'

const EVERY_MS = 5_000

/** What recovery would apply now, with reasons; the same as `unstuck recover --dry-run`. */
export function Recovery() {
  const plan = useResource<Plan>('/api/recovery', { refreshMs: EVERY_MS })
  const cleaning = useResource<Cleaning>('/api/clean', { refreshMs: 2 * EVERY_MS })
  const reload = () => {
    plan.reload()
    cleaning.reload()
  }
  useReloadAfterActions(reload)
  useLiveEvents('trail', reload)

  const result = plan.data && resultOfRecovery(plan.data)
  return (
    <>
      <PageHead
        title="Recovery"
        actions={
          <ActionButtons
            actions={[...(cleaning.data?.actions ?? []), ...(plan.data?.actions ?? [])]}
          />
        }
      >
        {result?.summary}
      </PageHead>

      <Section
        title="Would be applied"
        note={result && result.count > 0 ? plural(result.count, 'verdict') : undefined}
      >
        <Loaded of={{ ...plan, data: result }} lines={5}>
          {({ changes, omitted }) =>
            changes.length > 0 ? (
              <ChangesList of={changes} cut={omitted.changes} isUnfolded />
            ) : (
              <Empty title="Nothing to recover.">
                All workers are alive, and no dead worker holds a target. A worker that dies is
                noticed within about a second where a worker, a command or this server runs.
              </Empty>
            )
          }
        </Loaded>
        {plan.data && (
          <div class="section-command">
            <CopyCommand
              command="unstuck recover --dry-run"
              call={{ method: 'GET', path: apiUrl('/api/recovery') }}
            />
          </div>
        )}
      </Section>

      {result && result.needsAttention.length + result.omitted.needsAttention > 0 && (
        <Section title="Needs attention" note="recovery does not decide these by itself">
          <ChangesList of={result.needsAttention} cut={result.omitted.needsAttention} isUnfolded />
        </Section>
      )}

      <Loaded of={cleaning} lines={4}>
        {(data) => <ResumableAndDead of={data} />}
      </Loaded>
      <LastRecoveries />
    </>
  )
}

function useReloadAfterActions(reload: () => void): void {
  const deeds = useCompletedActions()
  useEffect(() => {
    if (deeds > 0) reload()
  }, [deeds])
}

/** Side by side: runs that are kept because they can continue, and dead ones that cannot. */
function ResumableAndDead({ of: { resumable, dead } }: { of: Cleaning }) {
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

const SHOWN = 8

/** What was recovered in the last days: how often, when, and the newest ones. */
function LastRecoveries() {
  const history = useResource<History>('/api/history?since=7d&limit=200')
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
function Totals({ of }: { of: History['counts'] }) {
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
