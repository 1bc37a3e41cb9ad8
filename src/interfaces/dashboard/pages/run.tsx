import { RateCharts } from '../kit/rate-charts.tsx'
import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { CopyButton, CopyCommand, CopyJson } from '../kit/copy.tsx'
import { Facts, PageHead, Section } from '../kit/section.tsx'
import { Loaded, Missing } from '../kit/states.tsx'
import { useLive } from '../live.ts'
import { formatEta, formatNumber, formatRow, isRow, safe, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import { TARGET_STATUSES, type Explanation, type RunDetail } from '../shapes.ts'
import { Groups, Targets } from './run-targets.tsx'
import { RunLog } from './run-log.tsx'
import { Timeline } from '../kit/history.tsx'
import { Age, WorkerName } from '../kit/text.tsx'
import { Link } from '../kit/link.tsx'
import { StatusPill, Totals } from '../kit/status.tsx'
import { Progress } from '../kit/progress.tsx'
import { formatRate, toneOf } from '../kit/run-cells.tsx'
import { rangeOf } from '../model/series.ts'
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
  return a.run.lastActivityAt >= b.run.lastActivityAt ? a : b
}

function RunDetails({ detail }: { detail: RunDetail }) {
  const { run, audit, executions, commands } = detail
  const isOwn = run.origin === null
  return (
    <>
      <RunHead detail={detail} />
      <div class="run-grid">
        <div class="run-main">
          <RunNumbers detail={detail} />
          <Groups detail={detail} />
          {isOwn && <RunPace run={run} />}
          {/* Crawlee has a log of its own, and keeps no journal. */}
          {isOwn && run.results === 'items' && <RunLog id={run.id} />}
          {!isRow(run) && <Targets detail={detail} />}
        </div>
        <div class="run-side">
          <RunExplanation run={run} />
          <Timeline audit={audit} executions={executions} />
          {isOwn && run.extracted > 0 && <ExportItems run={run} />}
          <Section title="In a terminal">
            <div class="pad stack">
              {commands.map((command) => (
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
function RunHead({ detail }: { detail: RunDetail }) {
  const { run } = detail
  return (
    <PageHead
      title={safe(run.source)}
      above={
        <>
          <Link to="/runs">Runs</Link> / <span class="mono">{shortId(run.id)}</span>
        </>
      }
      actions={<ActionButtons actions={detail.actions} />}
    >
      <div class="row">
        <StatusPill is={run.status} />
        {run.health && run.health !== 'interrupted' && (
          <StatusPill is={run.health} why={run.because && safe(run.because)} />
        )}
        <span class="faint">
          created <Age at={run.createdAt} />
        </span>
        {run.finishedAt && (
          <span class="faint">
            ended <Age at={run.finishedAt} />
          </span>
        )}
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
function RunNumbers({ detail: { run, counts, owner } }: { detail: RunDetail }) {
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
          <Totals
            of={TARGET_STATUSES.map((status) => [status, counts[status]] as const).filter(
              ([, count]) => count > 0,
            )}
            to={`/runs/${run.id}?status=*#targets`}
          />
        )}
        <Facts
          of={[
            ['Pages', formatNumber(run.pages)],
            ['Pages per minute', run.pace ? formatRate(run.pace.pagesPerMinute) : '–'],
            ['Items', formatNumber(run.extracted)],
            ['Skipped', formatNumber(run.skipped)],
            ['Last progress', <Age at={run.lastActivityAt} />],
            ['Started', <Age at={run.startedAt} none="not yet" />],
            ['Held by', <Owner run={run} owner={owner} />],
          ]}
        />
        {run.error && <p class="error">{safe(run.error)}</p>}
      </div>
    </Section>
  )
}

function Owner({ run, owner }: Pick<RunDetail, 'run' | 'owner'>) {
  if (owner) {
    return (
      <Link to="/workers">
        <WorkerName is={owner} />
      </Link>
    )
  }
  if (run.owner) return <span class="mono">{shortId(run.owner.worker)}</span>
  return <>{run.origin ? 'no known owner' : 'no owner'}</>
}

/** Its pace since it started, or for as long as samples are kept. */
function RunPace({ run }: Pick<RunDetail, 'run'>) {
  return (
    <Section title="Pace">
      <RateCharts
        query={`run=${run.id}&since=${rangeOf(run.createdAt, nowMs())}`}
        isLive={run.health !== null}
        from={run.startedAt ?? run.createdAt}
        to={run.finishedAt}
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

const FORMATS = ['jsonl', 'csv', 'json'] as const

/** Downloads of the items that the runs of a source have saved. */
function ExportItems({ run: { source, results } }: Pick<RunDetail, 'run'>) {
  if (results === 'datasets') {
    return (
      <Section title="Saved items">
        <p class="pad">
          They are in the crawler’s datasets: <code>await crawler.exportData('items.json')</code>
        </p>
      </Section>
    )
  }
  const path = `/api/items/${encodeURIComponent(source)}`
  return (
    <Section title="Saved items" note={`all of ${safe(source)}`}>
      <div class="pad row">
        {FORMATS.map((format) => (
          <a
            key={format}
            class="button button-plain button-small"
            href={apiUrl(`${path}?format=${format}`)}
            download
          >
            {format.toUpperCase()}
          </a>
        ))}
      </div>
    </Section>
  )
}
