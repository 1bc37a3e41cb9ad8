import { shortId } from '../../../core/model/id.ts'
import type { presentOverview } from '../../../presenters/overview.ts'
import type { Worker as WorkerView } from '../../../presenters/records.ts'
import { plural, workerReason } from '../../../presenters/format.ts'
import { firstOf, ok, warning, type Finding } from '../../../contracts/finding.ts'

/** What `unstuck status` reports, as a finding. */
export function runsFinding(overview: ReturnType<typeof presentOverview>): Finding {
  const { severity, summary, view } = overview
  if (severity === 'ok') return ok('runs', summary)
  return warning('runs', summary, {
    details: firstOf(
      view.attention.map(
        ({ source, what, because }) =>
          `${source}: ${what}${because === null ? '' : `; ${because}`}`,
      ),
    ),
    why: 'This work does not continue by itself.',
    fix: '`unstuck status` names the command for each.',
  })
}

/** Checks that no lost worker still owns targets. */
export function workersFinding(workers: readonly WorkerView[]): Finding {
  const present = workers.filter(isPresent)
  const lost = workers.filter(
    ({ liveness, targets }) => (liveness === 'gone' || liveness === 'silent') && targets > 0,
  )
  const atWork = present.filter(isOwn).length
  const rows = present.length - atWork
  if (lost.length === 0) {
    const working = atWork === 0 ? 'No worker is running' : `${plural(atWork, 'worker')} running`
    const also = rows === 0 ? '' : `, ${plural(rows, 'row')} of your tables with a live owner`
    return ok('workers', `${working}${also}, and no lost worker owns targets.`)
  }
  const targets = lost.reduce((sum, worker) => sum + worker.targets, 0)
  const areTheirs = !lost.some(isOwn)
  const found = areTheirs
    ? `${plural(lost.length, 'row')} of your tables whose owner is lost.`
    : `${plural(lost.length, 'lost worker')} still owning ${plural(targets, 'target')}.`
  return warning('workers', found, {
    details: firstOf(
      lost.map(({ id, label, liveness, because, targets }) =>
        label === null
          ? `${shortId(id)} ${liveness}, ${plural(targets, 'target')}: ${because}`
          : workerReason({ id, label, liveness, because }),
      ),
    ),
    ...(areTheirs ? ROWS_ADVICE : workersAdvice(atWork)),
  })
}

export function isWorking(worker: WorkerView): boolean {
  return isPresent(worker) && isOwn(worker)
}

function isPresent({ liveness }: WorkerView): boolean {
  return liveness === 'present' || liveness === 'stalled'
}

/** The others are owners of rows in tables of the user's own. */
function isOwn({ label }: WorkerView): boolean {
  return label === null
}

const ROWS_ADVICE = {
  why: '`unstuck serve` recovers such rows within about a minute: it does not seem to run.',
  fix: '`unstuck recover` recovers them now.',
}

function workersAdvice(atWork: number) {
  return {
    why:
      atWork === 0
        ? 'Running workers recover such targets within a second or after the lease; there is none.'
        : 'Running workers recover such targets within a second or after the lease. If they stay, recovery does not run.',
    fix: '`unstuck recover` recovers them now, and so does the next worker that starts.',
  }
}
