import { isCrawlee } from '../../../core/model/crawlee.ts'
import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { CopyButton, CopyCommand, CopyJson } from '../kit/copy.tsx'
import { Facts, PageHead, Section } from '../kit/section.tsx'
import { Empty, Failure, Loaded, Loading } from '../kit/states.tsx'
import { useLive } from '../live.ts'
import { formatEta, formatNumber, formatRow, isRow, safe, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl, navigate } from '../router.ts'
import type { Explanation, RunDetail, Series, TargetStatus } from '../shapes.ts'
import { Groups, Targets } from './run-targets.tsx'
import { RunLog } from './run-log.tsx'
import { Timeline } from '../kit/timeline.tsx'
import { Age, WorkerName } from '../kit/text.tsx'
import { CountLink, Link } from '../kit/link.tsx'
import { StatusPill } from '../kit/status.tsx'
import { Progress } from '../kit/progress.tsx'
import { toneOf } from '../kit/run-cells.tsx'
import { useMemo } from 'preact/hooks'
import { Chart } from '../kit/chart.tsx'
import { perMinute, rangeOf } from '../model/series.ts'
import { nowMs } from '../clock.ts'
import { ExplanationDetails } from '../kit/explanation.tsx'

/** Everything about one run, live. */
export function RunPage({ id }: { id: string }) {
  const live = useLive<RunDetail>(`run:${id}`)
  const fetched = useResource<RunDetail>(`/api/runs/${id}`, { version: useCompletedActions() })
  const detail = newer(live, fetched.data)
  if (!detail) {
    if (fetched.error?.status === 404) return <NoSuchRun id={id} />
    return fetched.error ? (
      <Failure error={fetched.error} retry={fetched.reload} />
    ) : (
      <Loading lines={8} />
    )
  }
  return (
    <>
      <RunHead detail={detail} />
      <div class="run-grid">
        <div class="run-main">
          <RunNumbers detail={detail} />
          <Groups detail={detail} />
          {detail.run.adopted === null && (
            <>
              <RunPace run={detail.run} />
              {/* A crawler of Crawlee's has a log of its own, and keeps no journal. */}
              {!isCrawlee(detail.run) && <RunLog id={detail.run.id} />}
            </>
          )}
          {!isRow(detail.run) && <Targets detail={detail} />}
        </div>
        <div class="run-side">
          <RunExplanation detail={detail} />
          <Timeline audit={detail.audit} executions={detail.executions} />
          {detail.run.adopted === null && detail.run.extracted > 0 && (
            <ExportItems source={detail.run.source} />
          )}
          <Section title="In a terminal">
            <div class="pad stack">
              {detail.commands.map((command) => (
                <CopyCommand key={command} command={command} />
              ))}
            </div>
          </Section>
        </div>
      </div>
    </>
  )
}

/** The stream and the answer to a call may overtake each other. */
function newer(a: RunDetail | undefined, b: RunDetail | undefined): RunDetail | undefined {
  if (!a || !b) return a ?? b
  return a.run.lastActivityAt >= b.run.lastActivityAt ? a : b
}

function NoSuchRun({ id }: { id: string }) {
  return (
    <>
      <PageHead title="No such run" />
      <Empty
        title={`There is no run ${id} in this database.`}
        icon="question"
        action={{ label: 'All runs', onClick: () => navigate('/runs') }}
      >
        It may have been deleted.
      </Empty>
    </>
  )
}

/** What it is, how it is, and what one can do about it. */
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
        {run.adopted && <span>{safe(formatRow(run.adopted))}</span>}
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

const STATUSES: readonly TargetStatus[] = [
  'planned',
  'in_progress',
  'done',
  'failed',
  'stuck',
  'parked',
]

/** How far it is: one big bar, the targets by status (each number leads to them), and the figures. */
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

const PACE_FRESH_MS = 15_000

/** How fast it went, since it began or for as long as samples are kept. */
function RunPace({ run }: { run: RunDetail['run'] }) {
  const since = rangeOf(run.createdAt, nowMs())
  const series = useResource<Series>(`/api/series?run=${run.id}&since=${since}`, {
    ...(run.health !== null && { refreshMs: PACE_FRESH_MS }),
  })
  const { data } = series
  const charts = useMemo(() => {
    const span = { from: run.startedAt ?? run.createdAt, to: run.finishedAt }
    return data && { pages: perMinute(data, 'pages', span), items: perMinute(data, 'items', span) }
  }, [data, run.startedAt, run.createdAt, run.finishedAt])
  return (
    <Section title="Pace">
      <Loaded of={{ ...series, data: charts }} lines={4}>
        {({ pages, items }) => (
          <div class="charts">
            <Chart label="Pages" unit="pages/min" kind="area" points={pages} />
            <Chart label="Items" unit="items/min" kind="area" points={items} />
          </div>
        )}
      </Loaded>
    </Section>
  )
}

const FRESH_MS = 5_000

/** The verdict on it now, what that rests on, and what would change it. */
function RunExplanation({ detail: { run } }: { detail: RunDetail }) {
  const explanation = useResource<Explanation>(`/api/runs/${run.id}/explain`, {
    version: useCompletedActions(),
    ...(run.health !== null && { refreshMs: FRESH_MS }),
  })
  return (
    <Section title="Why" aside={explanation.data && <CopyJson value={explanation.data} />}>
      <Loaded of={explanation}>{(data) => <ExplanationDetails explanation={data} />}</Loaded>
    </Section>
  )
}

const FORMATS = ['jsonl', 'csv', 'json'] as const

/** What the runs of a source have saved, as files. They are streamed, however many there are. */
function ExportItems({ source }: { source: string }) {
  if (isCrawlee({ source })) return <InDatasets />
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

function InDatasets() {
  return (
    <Section title="Saved items">
      <p class="pad">
        They are in the crawler’s datasets: <code>await crawler.exportData('items.json')</code>
      </p>
    </Section>
  )
}
