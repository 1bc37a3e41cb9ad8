import { useFilters } from '../kit/filters.tsx'
import { RateCharts } from '../kit/rate-charts.tsx'
import { ActionButtons } from '../kit/actions.tsx'
import { Age } from '../kit/text.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Icon, type IconName } from '../kit/icon.tsx'
import { Link } from '../kit/link.tsx'
import { RUN_COLUMNS } from '../kit/run-cells.tsx'
import { Section, useTitle } from '../kit/section.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { Table } from '../kit/table.tsx'
import { useLive } from '../live.ts'
import { formatNumber, plural, safe, splitSummary, toneOfHealth } from '../model/format.ts'
import { totalPace } from '../model/series.ts'
import { Pill, StatusPill, Totals } from '../kit/status.tsx'
import { SourceState } from '../kit/source-state.tsx'
import { useResource } from '../resource.ts'
import { useHasRole } from '../session.ts'
import { LIVENESS, RUN_STATUSES, type Alert, type Overview as Shape } from '../shapes.ts'

/** The first screen. Live; the first data is fetched, so that it also works without a stream. */
export function Overview() {
  const live = useLive<Shape>('overview')
  const fetched = useResource<Shape>(live ? null : '/api/overview')
  const overview = live ?? fetched.data
  useTitle(overview ? splitSummary(overview.summary).line.replace(/\.$/, '') : 'Overview')
  if (!overview) {
    return fetched.error ? (
      <Failure error={fetched.error} retry={fetched.reload} />
    ) : (
      <Loading lines={8} what="Looking at everything" />
    )
  }
  if (overview.latest === null) return <FirstSteps />
  return (
    <>
      <StatusHeadline overview={overview} />
      <LiveRuns overview={overview} />
      <Attention overview={overview} />
      <Sources overview={overview} />
      <Charts overview={overview} />
      <SystemSummary overview={overview} />
    </>
  )
}

const STATE_ICONS: Readonly<Record<Shape['state'], IconName>> = {
  stuck: 'unlink',
  attention: 'bell',
  well: 'check',
  idle: 'pause',
}

/** "Is anything stuck?", and the button if something is. */
function StatusHeadline({ overview }: { overview: Shape }) {
  const canAct = useHasRole('operator')
  const { severity, state } = overview
  const tone = toneOfHealth(severity, state === 'idle' ? 'quiet' : 'good')
  const { line, detail } = splitSummary(overview.summary)
  return (
    <header class={`answer tone-${tone}`}>
      <span class="disc">
        <Icon name={STATE_ICONS[state]} size={26} />
      </span>
      <div class="fill">
        <h1 tabIndex={-1}>Is anything stuck?</h1>
        <p aria-live="polite">
          <strong class="answer-line">{line}</strong>
          {detail && <span class="soft">{detail}</span>}
        </p>
      </div>
      {canAct ? (
        <ActionButtons actions={overview.actions} size="large" />
      ) : (
        overview.actions.length > 0 && <Link to="/recovery">What would be recovered</Link>
      )}
    </header>
  )
}

/** Every live run, the worst first; of very many only the worst. */
function LiveRuns({ overview }: { overview: Shape }) {
  const { runs, liveRuns } = overview
  const isPart = liveRuns > runs.length
  return (
    <Section
      title="Live runs"
      note={
        isPart
          ? `${formatNumber(runs.length)} of ${plural(liveRuns, 'run')}, the worst first`
          : plural(liveRuns, 'run')
      }
      aside={
        <Link to={isPart ? '/runs?status=live' : '/runs'}>
          {isPart ? 'All live runs' : 'All runs'}
        </Link>
      }
    >
      {runs.length === 0 ? (
        <NothingLive overview={overview} />
      ) : (
        <Table
          caption="Live runs"
          rows={runs}
          rowKey={({ id }) => id}
          isTrouble={({ severity }) => severity === 'stuck'}
          columns={LIVE_COLUMNS}
        />
      )}
    </Section>
  )
}

const { source, state, progress, rate, eta, lastProgress, owner } = RUN_COLUMNS
const LIVE_COLUMNS = [source, state, progress, rate, eta, lastProgress, owner]

function NothingLive({ overview: { latest } }: { overview: Shape }) {
  return (
    <Empty title="Nothing runs right now." icon="pause">
      {latest && (
        <p>
          The last run was of <Link to={`/runs/${latest.id}`}>{latest.source}</Link>:{' '}
          {latest.status}, <Age at={latest.finishedAt ?? latest.lastActivityAt} />.
        </p>
      )}
    </Empty>
  )
}

/** What needs attention, each with its reason and the next command. */
function Attention({ overview: { attention, alerts } }: { overview: Shape }) {
  if (attention.length === 0) return null
  return (
    <Section title="Needs attention" note={plural(attention.length, 'thing')}>
      <ul class="list">
        {attention.map((item) => (
          <AttentionItem
            key={`${item.source} ${item.run} ${item.what}`}
            {...item}
            alert={alerts.find((alert) => isAbout(alert, item))}
          />
        ))}
      </ul>
    </Section>
  )
}

function isAbout(alert: Alert, item: Shape['attention'][number]): boolean {
  if (item.run !== null) return alert.run === item.run
  return alert.source === item.source || alert.because === item.because
}

function AttentionItem(props: Shape['attention'][number] & { alert: Alert | undefined }) {
  const { run, source, what, because, command, alert } = props
  return (
    <li class="row" data-row tabIndex={-1}>
      <div class="fill">
        <p class="row">
          {run === null ? (
            <strong>{safe(source)}</strong>
          ) : (
            <Link to={`/runs/${run}`} class="row-link">
              {safe(source)}
            </Link>
          )}
          <span>{safe(what)}</span>
          {alert && (
            <span class="row small toned tone-warn">
              <Icon name="bell" size={13} />
              <span>
                alerted <Age at={alert.since} />
              </span>
            </span>
          )}
        </p>
        {because && <p class="clamp soft small">{safe(because)}</p>}
        {what.includes('target') && (
          <Link to={`/dead-letters?source=${encodeURIComponent(source)}`} class="link small">
            {/^1 target\b/.test(what) ? 'Its error' : 'Their errors'}
          </Link>
        )}
      </div>
      <CopyCommand command={command} />
    </li>
  )
}

/** What is paused, and what starts next. */
function Sources({ overview: { sources } }: { overview: Shape }) {
  if (sources.length === 0) return null
  return (
    <Section title="Paused and scheduled" note={plural(sources.length, 'source')}>
      <ul class="list">
        {sources.map((one) => (
          <li key={one.source} class="row" data-row tabIndex={-1}>
            <Link to={`/runs?source=${encodeURIComponent(one.source)}`} class="row-link">
              {safe(one.source)}
            </Link>
            <span class="fill">
              <SourceState of={one} />
            </span>
            <ActionButtons actions={one.actions} size="small" />
          </li>
        ))}
      </ul>
    </Section>
  )
}

/** Shown while there is no run. */
function FirstSteps() {
  return (
    <section class="stack first" aria-labelledby="first">
      <h1 id="first" tabIndex={-1}>
        Nothing has run yet.
      </h1>
      <p>Start one of these in a terminal; it shows up here without a reload.</p>
      <h2>See it survive kill -9, on this machine</h2>
      <CopyCommand command="unstuck demo" />
      <h2>Work on a crawl of your own</h2>
      <CopyCommand command="unstuck work crawl.ts --workers 4" />
      <h2>Wrap a scraper in any language</h2>
      <CopyCommand command="unstuck run shop --interval 30m -- python scraper.py" />
    </section>
  )
}

const RANGES = [
  { value: '', label: '1 h', since: '1h' },
  { value: '24h', label: '24 h', since: '24h' },
  { value: '7d', label: '7 days', since: '7d' },
]

/** Pages, items and recoveries over time; the range is in the address. */
function Charts({ overview: { runs, liveRuns } }: { overview: Shape }) {
  const { filters, set } = useFilters({ range: 'one' } as const)
  const range = RANGES.find(({ value }) => value === filters.range) ?? RANGES[0]!
  const isAll = runs.length === liveRuns
  return (
    <Section
      title="Over time"
      aside={
        <div class="row chips" role="group" aria-label="Range of the charts">
          {RANGES.map(({ value, label }) => (
            <button
              key={value}
              type="button"
              class="chip"
              aria-pressed={value === range.value}
              onClick={() => set({ range: value }, { replace: true })}
            >
              {label}
            </button>
          ))}
        </div>
      }
    >
      <RateCharts
        query={`since=${range.since}`}
        pace={isAll ? totalPace(runs) : undefined}
        hasRecoveries
      />
    </Section>
  )
}

/** The workers by liveness, wrapped commands, and all runs by status. */
function SystemSummary({ overview }: { overview: Shape }) {
  const { workers, totals, sourceLocks, sources } = overview
  const countsOf = <K extends string>(keys: readonly K[], counts: Partial<Record<K, number>>) =>
    keys.map((key) => [key, counts[key] ?? 0] as const).filter(([, count]) => count > 0)
  return (
    <div class="columns">
      <Section title="Workers" aside={<Link to="/workers">All workers</Link>}>
        <Totals
          of={countsOf(LIVENESS.toReversed(), workers)}
          to="/workers?liveness=*"
          none="No worker runs."
        />
      </Section>
      {sourceLocks.length > 0 && (
        <Section title="Wrapped commands">
          <ul class="list">
            {sourceLocks.map((command) => (
              <Command
                key={command.source}
                command={command}
                isPaused={sources.some((one) => one.source === command.source && one.paused)}
              />
            ))}
          </ul>
        </Section>
      )}
      <Section title="All runs" aside={<Link to="/runs">All runs</Link>}>
        <Totals of={countsOf(RUN_STATUSES, totals)} to="/runs?status=*" none="None yet." />
      </Section>
    </div>
  )
}

function Command(props: { command: Shape['sourceLocks'][number]; isPaused: boolean }) {
  const { command, isPaused } = props
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
      {isPaused && <StatusPill is="paused" />}
      <span class="soft small">
        since <Age at={gaveUp?.at ?? endingSince ?? since} />
        {gaveUp && `: ${safe(gaveUp.because)}`}
      </span>
    </li>
  )
}
