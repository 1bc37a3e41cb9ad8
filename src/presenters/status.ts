import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { shortId } from '../core/model/id.ts'
import { isAdoptedRow, type Run } from '../core/model/run.ts'
import type { Millis } from '../core/model/time.ts'
import type { Liveness } from '../core/model/worker.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { assessRuns, storedPolicy, type PolicyOf } from '../core/recovery/assess.ts'
import type { UnreadableTable, Store } from '../core/store/store.ts'
import { sourceLockView, runView, type RunView } from './view.ts'
import { healthOf, isStuck, type Health, type HealthState } from './health.ts'
import { formatAge, plural } from './format.ts'
import { listWorkers } from './workers.ts'

/** What `status` answers with `--json`. */
type StatusData = {
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

/** Something left for a person. */
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
  readonly live: readonly { readonly run: Run; readonly health: Health }[]
  readonly latest: Run | null
  readonly now: Millis
}

/** Looks at everything once: live runs and their workers, and the last run of each source that failed. */
export async function getStatus(
  store: Store,
  policyOf: PolicyOf = storedPolicy,
): Promise<StatusReport> {
  const now = await store.now()
  const workers = await store.observations()
  const workerViews = await listWorkers(store, now, workers)
  const options = { now, observer: TRUSTED_OBSERVER, policyOf }
  const live = assessRuns(await store.liveRuns(), workers, options).map((assessed) => ({
    run: assessed.run,
    health: healthOf(assessed, now),
  }))
  const ended = await store.lastFailed()
  const latest = (await store.runs({ limit: 1 })).items[0] ?? null
  const guards = (await store.sourceLocks()).filter(({ worker, gaveUp }) => worker ?? gaveUp)
  const runsWithFailures = [...live.map(({ run }) => run), ...ended].filter(
    (run) => describeFailures(run) !== null,
  )
  const data: StatusData = {
    summary: withUnreadable(
      store.unreadable,
      summarize(live, runsWithFailures, guards.filter(({ gaveUp }) => gaveUp).length),
    ),
    runs: live.map(({ run, health: { state, because } }) => ({
      ...runView(run),
      health: state,
      because,
    })),
    workers: countBy(workerViews.map(({ sign }) => sign)),
    attention: [
      ...live
        .filter(({ health }) => isStuck(health))
        .map(({ run, health }) => attentionItem(run, health.state, health.because)),
      ...runsWithFailures.map((run) => attentionItem(run, describeFailures(run)!, run.error)),
      ...guards.flatMap(gaveUpItems),
      ...store.unreadable.map(unreadableItem),
    ],
    commands: guards.map(sourceLockView),
    latest: latest && runView(latest),
  }
  return { data, live, latest, now }
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

function attentionItem(run: Run, what: string, because: string | null): AttentionItem {
  return {
    run: run.id,
    source: run.source,
    what,
    because,
    command: unstuckCommand('show', [shortId(run.id)]),
  }
}

function summarize(
  live: StatusReport['live'],
  runsWithFailures: readonly Run[],
  gaveUpCount: number,
): string {
  const stuck = live.filter(({ health }) => isStuck(health))
  const states = countBy(live.map(({ health }) => health.state))
  const longest = Math.max(...stuck.map(({ health }) => health.sinceMs))
  const sum = (kind: 'failed' | 'parked' | 'stuck'): number =>
    runsWithFailures.reduce(
      (total, run) => total + (isAdoptedRow(run) ? 0 : run.counts.targets[kind]),
      0,
    )
  const rows = runsWithFailures.filter(isAdoptedRow).length
  const isAnyAdopted = live.some(({ run, health }) => health.state === 'waiting' && run.adopted)
  const parts = [
    states.healthy && `${plural(states.healthy, 'run')} healthy`,
    states.waiting &&
      `${plural(states.waiting, 'run')} waiting ${isAnyAdopted ? 'to be taken up' : 'for a worker'}`,
    states.interrupted && `${plural(states.interrupted, 'run')} interrupted, ready to go on`,
    stuck.length > 0 && `${plural(stuck.length, 'run')} stuck for ${formatAge(longest)}`,
    rows > 0 && `${plural(rows, 'run')} failed`,
    sum('failed') > 0 && `${plural(sum('failed'), 'target')} failed`,
    sum('parked') > 0 && `${plural(sum('parked'), 'target')} parked`,
    sum('stuck') > 0 && `${plural(sum('stuck'), 'target')} held`,
    gaveUpCount > 0 && `${plural(gaveUpCount, 'command')} given up`,
  ].filter(Boolean)
  if (stuck.length > 0) return `Something is stuck: ${parts.join(', ')}.`
  if (runsWithFailures.length > 0 || gaveUpCount > 0) {
    return `Nothing is stuck, but something is left for a person: ${parts.join(', ') || `${plural(runsWithFailures.length, 'run')} failed`}.`
  }
  return parts.length > 0
    ? `Nothing is stuck: ${parts.join(', ')}.`
    : 'Nothing is stuck, and nothing is running.'
}

function countBy<K extends string>(keys: readonly K[]): Partial<Record<K, number>> {
  const counts: Partial<Record<K, number>> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
