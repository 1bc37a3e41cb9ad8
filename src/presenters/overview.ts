import { runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import { iso, type Millis } from '../core/model/time.ts'
import {
  assess,
  type AssessContext,
  type AssessedRun,
  type Assessment,
} from '../core/recovery/assess.ts'
import type { UnreadableTable } from '../core/store/store.ts'
import {
  right,
  left,
  firstSentences,
  omittedRows,
  ROWS_MAX,
  type Section,
  type Sentence,
  type Table,
  makeTable,
  type Cell,
} from '../lib/text/sentence.ts'
import { waysOut, type AllowedAction } from './allowed-actions.ts'
import { unstickAction } from './bulk-actions.ts'
import { needsOperator } from './stuck-rows.ts'
import { loadAttention, NOTHING_FOUND, type FoundAttention } from './load-attention.ts'
import {
  formatAge,
  formatAgo,
  formatRunStatus,
  needsAttention,
  plural,
  barOf,
  knownPages,
  howFar,
  introduceCommand,
  SEVERITY_STYLE,
  knownTime,
} from './format.ts'
import type { Presented } from './presented.ts'
import { recentSamples, type RecentSamples } from './pace.ts'
import { NO_RECOVERY } from './recovery.ts'
import type { Attention } from './results.ts'
import { listedRunView, RUN } from './runs.ts'
import {
  bySource,
  currentStates,
  pausedSentences,
  startsByItself,
  wrappedSentences,
} from './sources.ts'
import { sourceItem } from './source-actions.ts'
import { SOURCE_STORE, type SourceState } from '../features/sources/store/store.ts'
import { alertView, runView, sourceLockView } from './view.ts'
import { workerViews } from './workers.ts'

/** Live runs in the view, the worst first, and sources; more runs are in their list. */
const LISTED_MAX = 200

/** All that "is anything stuck?" is answered from. */
export type Overview = FoundAttention & {
  readonly assessment: Assessment
  /** Sources that are paused, or whose supervisor waits. */
  readonly sources: readonly SourceState[]
  /** The newest run of all, live or not. */
  readonly latest: Run | null
  readonly samples: RecentSamples
  readonly totals: Readonly<Record<string, number>>
}

/** Reads one assessment, what needs attention, and totals. */
export async function loadOverview(context: AssessContext): Promise<Overview> {
  const { store } = context
  const assessment = await assess(context)
  const [found, newest, samples, totals, states] = await Promise.all([
    loadAttention(context, assessment),
    store.runs({ limit: 1 }),
    recentSamples(store, assessment.now),
    store.runTotals(),
    (await store.extend(SOURCE_STORE)).sourceStates(),
  ])
  const latest = newest.items[0] ?? null
  const sources = currentStates(states, found.lockStates)
  return { ...found, assessment, sources, latest, samples, totals }
}

type OverviewView = ReturnType<typeof overviewView>

/** `status`, the first screen of the dashboard, and the headline of `top`. */
export function presentOverview(overview: Overview): Presented<OverviewView> {
  const { severity, latest, attention, lockStates, sources } = overview
  const hasRun =
    latest !== null || attention.length > 0 || lockStates.length > 0 || sources.length > 0
  const summary = hasRun ? summarize(overview) : NOTHING_YET
  return {
    view: overviewView(overview),
    severity,
    summary,
    sections: hasRun
      ? [
          headline(overview, summary),
          ...liveSections(overview),
          processSection(overview),
          ...attentionSections(attention),
        ]
      : firstSteps(),
    actions: unstickActions(overview),
  }
}

/** What recovery does not move, an operator does: for the worst row. */
function unstickActions({ severity, live }: Overview): readonly AllowedAction[] {
  if (severity !== 'stuck') return []
  const stuck = live.filter(({ health }) => health.severity === 'stuck')
  return stuck.length > 0 && stuck.every(needsOperator)
    ? waysOut(stuck[0]!.run)
    : [unstickAction(live.map(({ health }) => health.state))]
}

/** `status` where there is no database yet. */
export function presentNoDatabase(where: string, now: Millis): Presented<OverviewView> {
  return { ...presentOverview(noOverview(now)), sections: firstSteps(where) }
}

/** Where there is no database yet. */
export function noOverview(now: Millis): Overview {
  return {
    ...NOTHING_FOUND,
    assessment: { ...NO_RECOVERY.assessment, now },
    sources: [],
    latest: null,
    samples: new Map(),
    totals: {},
  }
}

function overviewView(overview: Overview) {
  const { assessment, live, severity, samples, totals, alerts, latest } = overview
  const { now } = assessment
  const well = live.length > 0 ? ('well' as const) : ('idle' as const)
  // Of several runs of a source the worst, which comes first.
  const liveBySource = new Map(live.toReversed().map(({ run }) => [run.source, run]))
  return {
    now: iso(now),
    state: severity === 'ok' ? well : severity,
    runs: live
      .slice(0, LISTED_MAX)
      .map(({ run, health }) => listedRunView(run, health, samples, now)),
    liveRuns: live.length,
    workers: countWorkers(assessment),
    attention: [...overview.attention],
    sources: overview.sources
      .slice(0, LISTED_MAX)
      .map((state) => sourceItem({ state, run: liveBySource.get(state.source) ?? null })),
    sourceLocks: overview.lockStates.map(({ lock }) => sourceLockView(lock)),
    latest: latest && runView(latest),
    alerts: alerts.map(alertView),
    totals,
  }
}

const NOTHING_YET = 'Nothing has run yet.'

function firstSteps(missing?: string): Section[] {
  const hint = missing === undefined ? '' : ` There is no database at ${missing}.`
  return [
    { heading: null, sentences: [[NOTHING_YET, { text: hint, style: 'dim' }]] },
    {
      heading: null,
      sentences: [
        ['  unstuck demo           see it survive kill -9, on this machine'],
        ['  unstuck work crawl.ts  work on a crawl of your own'],
      ],
    },
  ]
}

function summarize(overview: Overview): string {
  const { live, severity, attention, assessment, sources } = overview
  const { now, unreadable } = assessment
  const stuck = live.filter(({ health }) => health.severity === 'stuck')
  const rest = live.filter(({ health }) => health.severity !== 'stuck')
  const states = countBy(rest.map(({ health }) => health.state))
  const dated = stuck.filter(({ run }) => !run.traits.isUndated)
  const longest = Math.max(...dated.map(({ health }) => now - health.since))
  const since =
    dated.length > 0 ? ` for ${stuck.length > 1 ? 'up to ' : ''}${formatAge(longest)}` : ''
  const waiting = rest.filter(({ health }) => health.state === 'waiting').map(({ run }) => run)
  const sourceStates = bySource(sources)
  const supervised = waiting.filter((run) => startsByItself(run, sourceStates, now))
  const isOnlyWorkers =
    supervised.length === 0 && waiting.every(({ traits }) => traits.continuedBy === 'worker')
  const starter = isOnlyWorkers
    ? 'for a worker'
    : supervised.length === waiting.length
      ? 'for the next start'
      : 'to be taken up'
  const parts = [
    stuck.length > 0 && `${plural(stuck.length, 'run')} stuck${since}`,
    states.unknown && `${plural(states.unknown, 'run')} unknown`,
    states.paused && `${plural(states.paused, 'run')} paused`,
    states.interrupted && `${plural(states.interrupted, 'run')} interrupted, ready to continue`,
    states.waiting && `${plural(states.waiting, 'run')} waiting ${starter}`,
    states.healthy && `${plural(states.healthy, 'run')} healthy`,
  ].filter(Boolean)
  const runs =
    parts.length > 0
      ? `: ${parts.join(', ')}.`
      : live.length > 0
        ? '.'
        : ', and nothing is running.'
  // The number is that of the list and of the dashboard's badge.
  const count = attention.length
  const need = count > stuck.length ? ` ${needsAttention(count)}` : ''
  const answer = `${severity === 'stuck' ? 'Something is stuck' : 'Nothing is stuck'}${runs}${need}`
  return withUnreadable(unreadable, answer)
}

function withUnreadable(unreadable: readonly UnreadableTable[], summary: string): string {
  if (unreadable.length === 0) return summary
  const names = unreadable.map(({ table }) => table).join(', ')
  return `Not all can be seen: ${names} cannot be read. Of the rest: ${summary}`
}

function headline({ live, latest, severity, assessment }: Overview, summary: string): Section {
  const last = live.length === 0 && latest ? [lastRun(latest, assessment.now)] : []
  const answer: Sentence = [{ text: summary, style: SEVERITY_STYLE[severity] }]
  return { heading: null, sentences: [answer, ...last] }
}

function liveSections({ live, assessment }: Overview): Section[] {
  if (live.length === 0) return []
  const sentences = omittedRows(live, '`unstuck runs` lists them')
  return [{ heading: null, table: liveTable(live, assessment.now), sentences }]
}

/** Workers, and wrapped commands that have no run now, or one that waits for its next start. */
function processSection({ live, lockStates, sources, assessment }: Overview): Section {
  const { now } = assessment
  const runs = live.map(({ run }) => run)
  const locks = lockStates.map(({ lock }) => lock)
  const counts = Object.entries(countWorkers(assessment)).map(
    ([liveness, count]) => `${count} ${liveness}`,
  )
  const workers: Sentence = [`Workers: ${counts.length > 0 ? counts.join(', ') : 'none'}`]
  const more = [
    ...wrappedSentences(locks, runs, bySource(sources), now),
    ...pausedSentences(sources, now),
  ]
  return { heading: null, sentences: [workers, ...firstSentences(more, '`--json` has all')] }
}

function lastRun(run: Run, now: Millis): Sentence {
  const { source, status, finishedAt } = run
  const when = `, ${formatAgo(finishedAt, now)}`
  return [`Last run: ${source} ${runName(run)}, `, formatRunStatus(status), when]
}

function liveTable(live: readonly AssessedRun[], now: Millis): Table {
  return makeTable(live.slice(0, ROWS_MAX), [
    RUN.id,
    RUN.source,
    left('STATUS', statusCell),
    RUN.done,
    left('', ({ run }) => barOf(howFar(run)), 3),
    right('PAGES', ({ run }) => String(knownPages(run.counts, run.traits) ?? '–'), 5),
    { ...RUN.items, optional: 2 },
    right('AGE', ({ run }) => formatAge(knownTime(run, now - run.createdAt)), 4),
    right('ACTIVITY', ({ run }) => formatAgo(knownTime(run, run.lastActivityAt), now), 1),
  ])
}

function statusCell({ run, health: { state, severity } }: AssessedRun): Cell {
  if (state === 'waiting' || state === 'healthy') return formatRunStatus(run.status)
  // Nothing waits for what is paused or acknowledged.
  return { text: state, style: severity === 'ok' ? 'dim' : SEVERITY_STYLE[severity] }
}

function countWorkers(assessment: Assessment) {
  return countBy(workerViews(assessment).map(({ liveness }) => liveness))
}

function attentionSections(attention: readonly Attention[]): Section[] {
  if (attention.length === 0) return []
  const sentences = attention.map(({ source, what, because, command, commands = [] }): Sentence => {
    const why = because ? `; ${because.replace(/\.$/, '')}` : ''
    const ways = commands.length > 0 ? ` What moves it: ${commands.map(code).join(', ')}.` : ''
    const see = `: ${what}${why}. ${introduceCommand(command)}${ways}`
    return ['- ', { text: source, style: 'strong' }, see]
  })
  const heading = `Needs attention: ${plural(attention.length, 'thing')}`
  return [{ heading, sentences: firstSentences(sentences, '`--json` has all') }]
}

function code(command: string): string {
  return `\`${command}\``
}

function countBy<K extends string>(keys: readonly K[]): Partial<Record<K, number>> {
  const counts: Partial<Record<K, number>> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
