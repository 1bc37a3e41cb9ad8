import { STEADY } from '../core/decide/liveness.ts'
import type { Guard } from '../core/model/source-lock.ts'
import { shortId } from '../core/model/id.ts'
import { isRow, type Run } from '../core/model/run.ts'
import type { Millis } from '../core/model/time.ts'
import type { Sign } from '../core/model/worker.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { judgeRuns, storedPolicy, type PolicyOf } from '../core/recovery/assess.ts'
import type { AwayTable, Store } from '../core/store/store.ts'
import { guardView, runView, type RunView } from './view.ts'
import { healthOf, isStuck, type Health, type HealthState } from './health.ts'
import { age, plural } from './format.ts'
import { rollCall } from './workers.ts'

/** What `status` answers with `--json`. */
type SurveyData = {
  /** "Is anything stuck?", in one line. */
  summary: string
  runs: (RunView & { health: HealthState; because: string })[]
  /** How many show which sign. */
  workers: Partial<Record<Sign, number>>
  attention: Attention[]
  /** Sources whose commands are wrapped now, between two runs too, or were given up. */
  commands: ReturnType<typeof guardView>[]
  /** The newest run of all, live or not. */
  latest: RunView | null
}

/** Something left for a person. */
type Attention = {
  /** Null: it is about the source. */
  run: string | null
  source: string
  what: string
  because: string | null
  command: string
}

export type Survey = {
  readonly data: SurveyData
  readonly live: readonly { readonly run: Run; readonly health: Health }[]
  readonly latest: Run | null
  readonly now: Millis
}

/** Looks at everything once: live runs and their workers, and the last run of each source that failed. */
export async function surveyStore(
  store: Store,
  policyOf: PolicyOf = storedPolicy,
): Promise<Survey> {
  const now = await store.now()
  const workers = await store.workers()
  const roll = await rollCall(store, now, workers)
  const look = { now, judge: STEADY, policyOf }
  const live = judgeRuns(await store.liveRuns(), workers, look).map((judged) => ({
    run: judged.run,
    health: healthOf(judged, now),
  }))
  const ended = await store.lastFailed()
  const latest = (await store.runs({ limit: 1 })).items[0] ?? null
  const guards = (await store.guards()).filter(({ worker, gaveUp }) => worker ?? gaveUp)
  const troubled = [...live.map(({ run }) => run), ...ended].filter((run) => trouble(run) !== null)
  const data: SurveyData = {
    summary: sayUnseen(
      store.away,
      summarise(live, troubled, guards.filter(({ gaveUp }) => gaveUp).length),
    ),
    runs: live.map(({ run, health: { state, because } }) => ({
      ...runView(run),
      health: state,
      because,
    })),
    workers: countBy(roll.map(({ sign }) => sign)),
    attention: [
      ...live
        .filter(({ health }) => isStuck(health))
        .map(({ run, health }) => attention(run, health.state, health.because)),
      ...troubled.map((run) => attention(run, trouble(run)!, run.error)),
      ...guards.flatMap(givenUp),
      ...store.away.map(unseen),
    ],
    commands: guards.map(guardView),
    latest: latest && runView(latest),
  }
  return { data, live, latest, now }
}

/** `2 targets failed, 1 parked`, or null when all is well with it. */
function trouble(run: Run): string | null {
  const { status, counts } = run
  const { targets } = counts
  if (isRow(run)) return status === 'failed' ? 'the run failed' : null
  const kinds = (['failed', 'parked', 'stuck'] as const).filter((kind) => targets[kind] > 0)
  if (kinds.length === 0) return status === 'failed' ? 'the run failed' : null
  const parts = kinds.map((kind, i) =>
    i === 0 ? `${plural(targets[kind], 'target')} ${kind}` : `${targets[kind]} ${kind}`,
  )
  return parts.join(', ')
}

/** Its supervisor will not start it again by itself. */
function givenUp({ source, gaveUp }: Guard): Attention[] {
  if (!gaveUp) return []
  const command = unstuckCommand('logs', [source])
  return [{ run: null, source, what: 'gave up', because: gaveUp.because, command }]
}

/** What is in a table that cannot be read may be stuck, and nobody can tell. */
function unseen({ table, because }: AwayTable): Attention {
  const what = 'the table cannot be read'
  return { run: null, source: table, what, because, command: 'unstuck doctor' }
}

function sayUnseen(away: readonly AwayTable[], summary: string): string {
  if (away.length === 0) return summary
  const names = away.map(({ table }) => table).join(', ')
  return `Not all can be seen: ${names} cannot be read. Of the rest: ${summary}`
}

function attention(run: Run, what: string, because: string | null): Attention {
  return {
    run: run.id,
    source: run.source,
    what,
    because,
    command: unstuckCommand('show', [shortId(run.id)]),
  }
}

function summarise(live: Survey['live'], troubled: readonly Run[], givenUp: number): string {
  const stuck = live.filter(({ health }) => isStuck(health))
  const states = countBy(live.map(({ health }) => health.state))
  const longest = Math.max(...stuck.map(({ health }) => health.sinceMs))
  const sum = (kind: 'failed' | 'parked' | 'stuck'): number =>
    troubled.reduce((total, run) => total + (isRow(run) ? 0 : run.counts.targets[kind]), 0)
  const rows = troubled.filter(isRow).length
  const isAnyTheirs = live.some(({ run, health }) => health.state === 'waiting' && run.adopted)
  const parts = [
    states.healthy && `${plural(states.healthy, 'run')} healthy`,
    states.waiting &&
      `${plural(states.waiting, 'run')} waiting ${isAnyTheirs ? 'to be taken up' : 'for a worker'}`,
    states.interrupted && `${plural(states.interrupted, 'run')} interrupted, ready to go on`,
    stuck.length > 0 && `${plural(stuck.length, 'run')} stuck for ${age(longest)}`,
    rows > 0 && `${plural(rows, 'run')} failed`,
    sum('failed') > 0 && `${plural(sum('failed'), 'target')} failed`,
    sum('parked') > 0 && `${plural(sum('parked'), 'target')} parked`,
    sum('stuck') > 0 && `${plural(sum('stuck'), 'target')} held`,
    givenUp > 0 && `${plural(givenUp, 'command')} given up`,
  ].filter(Boolean)
  if (stuck.length > 0) return `Something is stuck: ${parts.join(', ')}.`
  if (troubled.length > 0 || givenUp > 0) {
    return `Nothing is stuck, but something is left for a person: ${parts.join(', ') || `${plural(troubled.length, 'run')} failed`}.`
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
