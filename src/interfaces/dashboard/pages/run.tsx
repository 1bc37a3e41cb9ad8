import { RateCharts } from '../kit/rate-charts.tsx'
import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { narrowRecovery } from '../kit/action-state.ts'
import { CopyButton, CopyCommand, CopyJson } from '../kit/copy.tsx'
import { SavedItems } from '../kit/saved-items.tsx'
import { Facts, PageHead, Section } from '../kit/section.tsx'
import { Loaded, Missing } from '../kit/states.tsx'
import { useLive } from '../live.ts'
import {
  formatEta,
  formatNumber,
  formatRate,
  formatRow,
  isRow,
  plural,
  safe,
  runId,
  shortId,
} from '../model/format.ts'
import { useResource } from '../resource.ts'
import {
  TARGET_STATUSES,
  type AllowedAction,
  type Explanation,
  type Overview,
  type RunDetail,
} from '../shapes.ts'
import { Groups, Targets } from './run-targets.tsx'
import { OnlyTarget, RunCommand } from './run-command.tsx'
import { RunLog } from './run-log.tsx'
import { Timeline } from '../kit/history.tsx'
import { Age } from '../kit/text.tsx'
import { Link } from '../kit/link.tsx'
import { StatusPill, Totals } from '../kit/status.tsx'
import { SourceState } from '../kit/source-state.tsx'
import { Progress } from '../kit/progress.tsx'
import { RunOwner, toneOf } from '../kit/run-cells.tsx'
import { nowMs } from '../clock.ts'
import { ExplanationDetails } from '../kit/explanation.tsx'

/** Everything about one run, live. */
export function RunPage({ id }: { id: string }) {
  const live = useLive<RunDetail>(`run:${id}`)
  const fetched = useResource<RunDetail>(`/api/runs/${id}`, { version: useCompletedActions() })
  const detail = newer(live, fetched.data)
  return (
    <Loaded
      of={{ ...fetched, data: detail, error: detail ? null : fetched.error }}
      lines={8}
      missing={<Missing what="run" id={id} />}
    >
      {(shown) => <RunDetails detail={shown} />}
    </Loaded>
  )
}

/** The stream and the response of a call may overtake each other. */
function newer(a: RunDetail | undefined, b: RunDetail | undefined): RunDetail | undefined {
  if (!a || !b) return a ?? b
  return (a.run.lastActivityAt ?? '') >= (b.run.lastActivityAt ?? '') ? a : b
}

/** The recovery of a run that lost its workers. */
function useRecovery({ source, health }: RunDetail['run']): readonly AllowedAction[] {
  const overview = useLive<Overview>('overview')
  if (health !== 'orphaned' || !overview) return []
  return overview.actions
    .filter(({ name }) => name === 'recover')
    .map((action) => narrowRecovery(action, source))
}

function RunDetails({ detail }: { detail: RunDetail }) {
  const { run, audit, executions, commands, source } = detail
  const isOwn = run.origin === null
  // Crawlee has a log of its own, and keeps no journal.
  const hasLog = isOwn && run.results === 'items'
  const [newest] = executions
  const recovery = useRecovery(run)
  return (
    <>
      <RunHead detail={detail} recovery={recovery} />
      <div class="run-grid">
        <div class={newest ? 'run-main is-command' : 'run-main'}>
          {newest && (
            <>
              <RunCommand of={newest} />
              <RunLog id={run.id} title="Output" />
            </>
          )}
          <RunNumbers detail={detail} />
          <Groups detail={detail} />
          {isOwn && <RunPace run={run} />}
          {hasLog && !newest && <RunLog id={run.id} title="Log" />}
          {!isRow(run) &&
            (run.kind === 'single' ? <OnlyTarget run={run} /> : <Targets detail={detail} />)}
        </div>
        <div class="run-side">
          <RunExplanation run={run} />
          <Timeline audit={audit} executions={executions} isPaused={source.paused !== null} />
          {isOwn && run.extracted + run.unchanged > 0 && (
            <SavedItems source={run.source} run={run.id} isLive={run.health !== null} />
          )}
          <Section title="In a terminal">
            <div class="pad stack">
              {[...recovery.map(({ command }) => command), ...commands].map((command) => (
                <CopyCommand key={command} command={command} />
              ))}
            </div>
          </Section>
        </div>
      </div>
    </>
  )
}

/** The name of a run, its state, and its actions. */
function RunHead(props: { detail: RunDetail; recovery: readonly AllowedAction[] }) {
  const { detail, recovery } = props
  const { run, source } = detail
  return (
    <PageHead
      title={safe(run.source)}
      above={
        <>
          <Link to="/runs">Runs</Link> / <span class="mono">{runId(run)}</span>
        </>
      }
      actions={<ActionButtons actions={[...recovery, ...detail.actions, ...source.actions]} />}
    >
      <div class="row">
        <StatusPill is={run.status} />
        {run.health && run.health !== 'interrupted' && (
          <StatusPill
            is={run.health}
            why={run.because && safe(run.because)}
            severity={run.severity}
          />
        )}
        {run.acknowledged ? (
          <StatusPill is="acknowledged" />
        ) : (
          detail.acknowledged > 0 && (
            <span class="faint">{plural(detail.acknowledged, 'target')} acknowledged</span>
          )
        )}
        <span class="faint">
          created <Age at={run.createdAt} />
        </span>
        {run.finishedAt && (
          <span class="faint">
            ended <Age at={run.finishedAt} />
          </span>
        )}
        {run.health !== 'paused' && <SourceState of={source} />}
        {run.origin && <span>{safe(formatRow(run.origin))}</span>}
        {run.attempt > 1 && <span class="faint">attempt {run.attempt}</span>}
        {run.retryOf && (
          <span class="faint">
            again after{' '}
            <Link to={`/runs/${run.retryOf}`} class="mono">
              {shortId(run.retryOf)}
            </Link>
          </span>
        )}
        <CopyButton text={run.id} label="Copy the whole id" word="id" />
        <CopyJson value={detail} />
      </div>
    </PageHead>
  )
}

/** The progress of a run: a bar, its targets by status, and its numbers. */
function RunNumbers({ detail: { run, counts, owner, continuation } }: { detail: RunDetail }) {
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
        {run.kind === 'crawl' && (
          <Totals
            of={TARGET_STATUSES.map((status) => [status, counts[status]] as const).filter(
              ([, count]) => count > 0,
            )}
            to={`/runs/${run.id}?status=*#targets`}
          />
        )}
        {run.health === 'orphaned' && run.origin === null && counts.in_progress > 0 && (
          <p class="faint">No live worker holds what is in progress.</p>
        )}
        <Facts
          of={[
            ['Pages', run.pages === null ? '–' : formatNumber(run.pages)],
            ['Pages per minute', formatRate(run) ?? '–'],
            ['Items', formatNumber(run.extracted)],
            ...(run.origin === null ? [['Unchanged', formatNumber(run.unchanged)] as const] : []),
            ['Skipped', formatNumber(run.skipped)],
            ['Last progress', <Age at={run.lastActivityAt} />],
            [
              'Started',
              <Age at={run.startedAt} none={run.status === 'queued' ? 'not yet' : '–'} />,
            ],
            ['Owner', <RunOwner run={run} owner={owner} />],
          ]}
        />
        {run.error && <p class="error">{safe(run.error)}</p>}
        {continuation !== null && (
          <>
            <p>Start it again:</p>
            <CopyCommand command={continuation} />
          </>
        )}
      </div>
    </Section>
  )
}

const YOUNG_MS = 10 * 60_000

/** Its pace since it started, or for as long as samples are kept. Nothing for a run that counted nothing. */
function RunPace({ run }: Pick<RunDetail, 'run'>) {
  if ((run.pages ?? 0) + run.extracted + run.unchanged === 0) return null
  return (
    <Section title="Pace">
      <RateCharts
        query={`run=${run.id}`}
        pace={formatRate(run) === null ? null : run.pace}
        isLive={run.health !== null}
        isYoung={nowMs() - Date.parse(run.startedAt ?? run.createdAt ?? '') < YOUNG_MS}
      />
    </Section>
  )
}

const REFRESH_MS = 5_000

/** The current verdict, its evidence, and what would change it. */
function RunExplanation({ run }: Pick<RunDetail, 'run'>) {
  const explanation = useResource<Explanation>(`/api/runs/${run.id}/explain`, {
    version: useCompletedActions(),
    ...(run.health !== null && { refreshMs: REFRESH_MS }),
  })
  return (
    <Section title="Why" aside={explanation.data && <CopyJson value={explanation.data} />}>
      <Loaded of={explanation}>{(data) => <ExplanationDetails explanation={data} />}</Loaded>
    </Section>
  )
}
