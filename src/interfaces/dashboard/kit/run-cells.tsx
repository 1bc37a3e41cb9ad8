import { STATUS_STYLES, StatusPill, type Tone } from './status.tsx'
import { formatEta, formatNumber, formatRow, safe, shortId } from '../model/format.ts'
import type { ListedRun } from '../shapes.ts'
import { Link } from './link.tsx'
import { Progress } from './progress.tsx'

/** A run in a list, cell by cell: the first screen and the list of runs show it alike. */

export function RunName({ run }: { run: ListedRun }) {
  return (
    <div class="run-name">
      <Link to={`/runs/${run.id}`} class="row-link">
        <bdi>{safe(run.source)}</bdi>
      </Link>
      <span class="faint mono">{shortId(run.id)}</span>
      {run.adopted && <span class="faint small">{safe(formatRow(run.adopted))}</span>}
    </div>
  )
}

/** The health of a live run and why; of an ended one its status and its error. */
export function RunState({ run }: { run: ListedRun }) {
  const because = run.health ? run.because : run.error
  return (
    <div class="tight">
      <StatusPill is={run.health ?? run.status} why={because && safe(because)} />
      {because && <span class="clamp soft small">{safe(because)}</span>}
    </div>
  )
}

export function RunProgress({ run }: { run: ListedRun }) {
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

/** The bar has the colour of the run's state, so that both say the same. What ended badly is grey: red is what was given up. */
export function toneOf(run: ListedRun): Tone {
  if (run.severity === 'stuck') return STATUS_STYLES[run.health!].tone
  if (run.status === 'running') return 'busy'
  return run.status === 'succeeded' || run.status === 'interrupted'
    ? STATUS_STYLES[run.status].tone
    : 'quiet'
}

export function RunPages({ run: { pace } }: { run: ListedRun }) {
  if (!pace) return <span class="none">–</span>
  return <>{formatNumber(Math.round(pace.pagesPerMinute))}</>
}

export function RunEta({ run: { pace } }: { run: ListedRun }) {
  const words = formatEta(pace?.etaSeconds)
  return words === null ? <span class="none">–</span> : <>{words}</>
}

/** A crawl has many workers and no owner. */
export function RunOwner({ run }: { run: ListedRun }) {
  // The worker id of an adopted row is derived: the table knows the row, and perhaps a name.
  if (run.owner !== null && run.adopted) {
    const row = formatRow(run.adopted)
    return (
      <Link to={`/workers?q=${encodeURIComponent(row)}`}>{safe(`row ${run.adopted.key}`)}</Link>
    )
  }
  if (run.owner !== null) {
    return (
      <Link to="/workers" class="mono">
        {shortId(run.owner.worker)}
      </Link>
    )
  }
  if (run.kind === 'single')
    return <span class="faint">{run.adopted ? 'not known' : 'no owner'}</span>
  return <Link to={`/workers?q=${encodeURIComponent(run.source)}`}>workers</Link>
}
