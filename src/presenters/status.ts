import { byHealth, worstSeverity, type HealthState, type Severity } from '../core/decide/health.ts'
import type { Alert } from '../core/model/alert.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { shortId } from '../core/model/id.ts'
import { isAdoptedRow, type Run } from '../core/model/run.ts'
import type { Millis } from '../core/model/time.ts'
import type { Liveness } from '../core/model/worker.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { LATEST_FAILED_MAX } from '../core/store/listing.ts'
import {
  assess,
  type AssessContext,
  type AssessedRun,
  type AssessedWorker,
} from '../core/recovery/assess.ts'
import type { UnreadableTable } from '../core/store/store.ts'
import { sourceLockView, runView, type RunView, type WorkerView } from './view.ts'
import { formatAge, plural } from './format.ts'
import { workerViews } from './workers.ts'

/** What `status` answers with `--json`. */
type StatusData = {
  severity: Severity
  /** "Is anything stuck?", in one line. */
  summary: string
  runs: (RunView & { health: HealthState; because: string })[]
  /** How many show which sign. */
  workers: Partial<Record<Liveness, number>>
  attention: AttentionItem[]
  /** Sources whose commands are wrapped now, between two runs too, or were given up. */
  commands: ReturnType<typeof sourceLockView>[]
  /** The newest run of all, live or not. */
  latest: RunView | null
}

/** Something that needs attention. */
type AttentionItem = {
  /** Null: it is about the source. */
  run: string | null
  source: string
  what: string
  because: string | null
  command: string
}

export type StatusReport = {
  readonly data: StatusData
  /** Worst first. */
  readonly live: readonly AssessedRun[]
  readonly workers: readonly WorkerView[]
  readonly alerts: readonly Alert[]
  readonly latest: Run | null
  readonly now: Millis
}

/** Answers "is anything stuck?": from one assessment, the last failed runs, source locks and open alerts. */
export async function getStatus(context: AssessContext): Promise<StatusReport> {
  const { store } = context
  const assessment = await assess(context)
  const { now, unreadable } = assessment
  const live = assessment.runs.toSorted((a, b) => byHealth(a.health.state, b.health.state))
  const workers = workerViews(assessment)
  const { items: ended } = await store.runs({ latestFailed: true, limit: LATEST_FAILED_MAX })
  const alerts = await store.openAlerts()
  const latest = (await store.runs({ limit: 1 })).items[0] ?? null
  const locks = (await store.sourceLocks()).filter(({ worker, gaveUp }) => worker ?? gaveUp)
  const runsWithFailures = [...live.map(({ run }) => run), ...ended].filter(
    (run) => describeFailures(run) !== null,
  )
  const unwell = live.filter(({ health }) => health.severity !== 'ok')
  const found = [
    ...unwell.map(healthItem),
    ...runsWithFailures.map(failuresItem),
    ...workerItems(assessment.workers, unwell),
    ...locks.flatMap(gaveUpItems),
    ...unreadable.map(unreadableItem),
  ]
  const attention = [...found, ...alertItems(alerts, found)]
  const severity = worstSeverity([
    assessment.severity,
    ...(attention.length > 0 ? ['attention' as const] : []),
  ])
  const data: StatusData = {
    severity,
    summary: withUnreadable(unreadable, summarize({ live, severity, attention, now })),
    runs: live.map(({ run, health: { state, because } }) => ({
      ...runView(run),
      health: state,
      because,
    })),
    workers: countBy(workers.map(({ sign }) => sign)),
    attention,
    commands: locks.map(sourceLockView),
    latest: latest && runView(latest),
  }
  return { data, live, workers, alerts, latest, now }
}

/** `2 targets failed, 1 parked`, or null when all is well with it. */
function describeFailures(run: Run): string | null {
  const { status, counts } = run
  const { targets } = counts
  if (isAdoptedRow(run)) return status === 'failed' ? 'the run failed' : null
  const kinds = (['failed', 'parked', 'stuck'] as const).filter((kind) => targets[kind] > 0)
  if (kinds.length === 0) return status === 'failed' ? 'the run failed' : null
  const parts = kinds.map((kind, i) =>
    i === 0 ? `${plural(targets[kind], 'target')} ${kind}` : `${targets[kind]} ${kind}`,
  )
  return parts.join(', ')
}

/** Its supervisor will not start it again by itself. */
function gaveUpItems({ source, gaveUp }: SourceLock): AttentionItem[] {
  if (!gaveUp) return []
  const command = unstuckCommand('logs', [source])
  return [{ run: null, source, what: 'gave up', because: gaveUp.because, command }]
}

/** What is in a table that cannot be read may be stuck, and nobody can tell. */
function unreadableItem({ table, because }: UnreadableTable): AttentionItem {
  const what = 'the table cannot be read'
  return { run: null, source: table, what, because, command: 'unstuck doctor' }
}

function withUnreadable(unreadable: readonly UnreadableTable[], summary: string): string {
  if (unreadable.length === 0) return summary
  const names = unreadable.map(({ table }) => table).join(', ')
  return `Not all can be seen: ${names} cannot be read. Of the rest: ${summary}`
}

function healthItem({ run, health }: AssessedRun): AttentionItem {
  const { state, because, command } = health
  return { run: run.id, source: run.source, what: state, because, command }
}

function failuresItem(run: Run): AttentionItem {
  const command = unstuckCommand('show', [shortId(run.id)])
  const what = describeFailures(run)!
  return { run: run.id, source: run.source, what, because: run.error, command }
}

/** Lost and stalled workers that hold targets of runs which are otherwise well: recovery lists these targets. */
function workerItems(
  workers: readonly AssessedWorker[],
  unwell: readonly AssessedRun[],
): AttentionItem[] {
  const reported = new Set(unwell.map(({ run }) => run.id))
  return workers
    .filter(
      ({ severity, runs }) => severity !== 'ok' && ![...runs].every((run) => reported.has(run)),
    )
    .map(({ worker, targets, assessment: { liveness, because } }) => ({
      run: null,
      source: worker.source,
      what: `a ${LOST.includes(liveness) ? 'lost' : liveness} worker holds ${plural(targets, 'target')}`,
      because,
      command: LOST.includes(liveness) ? 'unstuck recover' : 'unstuck workers',
    }))
}

const LOST: readonly Liveness[] = ['gone', 'silent']

/** Open alerts about anything that is not listed already. */
function alertItems(alerts: readonly Alert[], found: readonly AttentionItem[]): AttentionItem[] {
  const isListed = ({ run, source }: Alert): boolean =>
    found.some((item) =>
      run === null ? item.run === null && item.source === source : item.run === run,
    )
  return alerts
    .filter((alert) => !isListed(alert))
    .map(({ rule, source, run, because, command }) => ({
      run,
      source: source ?? 'several sources',
      what: `alert ${rule}`,
      because,
      command,
    }))
}

function summarize({
  live,
  severity,
  attention,
  now,
}: Pick<StatusReport, 'live' | 'now'> & Pick<StatusData, 'severity' | 'attention'>): string {
  const stuck = live.filter(({ health }) => health.severity === 'stuck')
  const rest = live.filter(({ health }) => health.severity !== 'stuck')
  const states = countBy(rest.map(({ health }) => health.state))
  const longest = Math.max(...stuck.map(({ health }) => now - health.since))
  const isAnyAdopted = rest.some(({ run, health }) => health.state === 'waiting' && run.adopted)
  const parts = [
    stuck.length > 0 && `${plural(stuck.length, 'run')} stuck for ${formatAge(longest)}`,
    states.unknown && `${plural(states.unknown, 'run')} unknown`,
    states.paused && `${plural(states.paused, 'run')} paused`,
    states.interrupted && `${plural(states.interrupted, 'run')} interrupted, ready to continue`,
    states.waiting &&
      `${plural(states.waiting, 'run')} waiting ${isAnyAdopted ? 'to be taken up' : 'for a worker'}`,
    states.healthy && `${plural(states.healthy, 'run')} healthy`,
  ].filter(Boolean)
  const runs =
    parts.length > 0
      ? `: ${parts.join(', ')}.`
      : live.length > 0
        ? '.'
        : ', and nothing is running.'
  const others = attention.length - stuck.length
  const need =
    others > 0 ? ` ${plural(others, 'thing')} ${others === 1 ? 'needs' : 'need'} attention.` : ''
  return `${severity === 'stuck' ? 'Something is stuck' : 'Nothing is stuck'}${runs}${need}`
}

function countBy<K extends string>(keys: readonly K[]): Partial<Record<K, number>> {
  const counts: Partial<Record<K, number>> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
