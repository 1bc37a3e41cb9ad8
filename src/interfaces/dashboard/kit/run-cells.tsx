import {
  formatEta,
  formatRate,
  formatNumber,
  formatRow,
  safe,
  runId,
  shortId,
  toneOfSeverity,
  type Tone,
} from '../model/format.ts'
import type { ListedRun } from '../shapes.ts'
import { Link } from './link.tsx'
import { Progress } from './progress.tsx'
import { StatusPill, styleOf } from './status.tsx'
import { numbers, type Column } from './table.tsx'
import { Age } from './text.tsx'

/** The columns of lists of runs. */
export const RUN_COLUMNS = {
  source: { head: 'Source', cell: (run) => <RunName run={run} />, isTitle: true },
  state: { head: 'State', cell: (run) => <RunState run={run} />, isWide: true },
  progress: { head: 'Progress', cell: (run) => <RunProgress run={run} />, isPlain: true },
  pages: numbers('Pages', (run) => orNone(run.pages === null ? null : formatNumber(run.pages))),
  items: numbers('Items', (run) => formatNumber(run.extracted)),
  rate: numbers('Pages/min', (run) => orNone(formatRate(run))),
  eta: numbers('ETA', ({ pace }) => orNone(formatEta(pace?.etaSeconds))),
  lastProgress: numbers('Last progress', (run) => <Age at={run.lastActivityAt} />),
  created: numbers('Created', (run) => <Age at={run.createdAt} />, true),
  owner: { head: 'Owner', cell: (run) => <RunOwner run={run} />, isExtra: true },
} as const satisfies Record<string, Column<ListedRun>>

function orNone(text: string | null) {
  return text ?? <span class="none">–</span>
}

function RunName({ run }: { run: ListedRun }) {
  return (
    <div class="tight">
      <Link to={`/runs/${run.id}`} class="row-link">
        <bdi>{safe(run.source)}</bdi>
      </Link>
      <span class="faint mono">{runId(run)}</span>
      {run.origin && <span class="faint small">{safe(formatRow(run.origin))}</span>}
    </div>
  )
}

/** The health of a live run and its reason; of an ended run the status and the error. */
function RunState({ run }: { run: ListedRun }) {
  const because = run.health ? run.because : run.error
  return (
    <div class="tight">
      <StatusPill
        is={run.health ?? run.status}
        why={because && safe(because)}
        severity={run.severity}
      />
      {because && <span class="clamp soft small">{safe(because)}</span>}
    </div>
  )
}

function RunProgress({ run }: { run: ListedRun }) {
  return (
    <Progress
      label={`Progress of ${safe(run.source)}`}
      done={run.done}
      total={run.total}
      isTotalKnown={run.planned}
      tone={toneOf(run)}
      isEnded={run.health === null}
    />
  )
}

/** The tone of a run's progress bar. What ended badly is grey: red is for failed targets. */
export function toneOf({ severity, status }: ListedRun): Tone {
  if (severity === 'stuck') return toneOfSeverity(severity)
  return ['running', 'succeeded', 'interrupted'].includes(status) ? styleOf(status).tone : 'quiet'
}

/** A crawl has no owner but workers, while it has any. */
function RunOwner({ run: { owner, origin, kind, source, status, health } }: { run: ListedRun }) {
  if (owner === null && (kind === 'single' || status !== 'running'))
    return <span class="faint">{origin ? 'not known' : 'no owner'}</span>
  if (owner === null)
    return (
      <Link to={`/workers?q=${encodeURIComponent(source)}`}>
        {health === 'orphaned' && origin === null ? 'lost workers' : 'workers'}
      </Link>
    )
  // The worker id of a row is derived: the table knows the row, and perhaps a name.
  if (origin) {
    const row = encodeURIComponent(formatRow(origin))
    return <Link to={`/workers?q=${row}`}>{safe(`row ${origin.key}`)}</Link>
  }
  return (
    <Link to="/workers" class="mono">
      {shortId(owner.worker)}
    </Link>
  )
}
