import { runName } from '../core/model/traits.ts'
import { cancelHint } from '../operator/refusals.ts'
import { worstSeverity } from '../core/decide/health.ts'
import { UsageError } from '../core/model/errors.ts'
import { withAbandonAfter } from '../core/model/policy-of.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import type { Millis } from '../core/model/time.ts'
import type { Verdict } from '../core/model/verdict.ts'
import { assess, type AssessContext, type AssessedRun } from '../core/recovery/assess.ts'
import { classify, type ClassifiedRuns } from '../core/recovery/clean.ts'
import { toRunVerdict } from '../core/recovery/recover.ts'
import {
  right,
  left,
  firstSentences,
  omittedRows,
  ROWS_MAX,
  type Section,
  type Sentence,
  makeTable,
} from '../lib/text/sentence.ts'
import { cleanAction } from './bulk-actions.ts'
import { loadAttention, NOTHING_FOUND, otherAttention } from './load-attention.ts'
import {
  formatAge,
  formatAgo,
  introduceCommand,
  nextStartCondition,
  plural,
  knownTime,
} from './format.ts'
import type { Presented } from './presented.ts'
import { RUN } from './runs.ts'
import { nameOf, revertibleRuns, undoByRevert, undoSentences } from './action-result.ts'
import {
  assessedRunView,
  decisionView,
  formatReason,
  isPlanned,
  planHash,
  verdictList,
  verdictView,
} from './verdict.ts'
import type { Cleaning } from './responses.ts'
import type {
  LiveRuns,
  Presented as PresentedJson,
  Summary,
  Verdict as VerdictView,
} from './results.ts'

/** Where nothing ever ran. */
export const NOTHING_LIVE: ClassifiedRuns = {
  now: 0,
  total: 0,
  active: [],
  resumable: [],
  dead: [],
  severity: 'ok',
}

type LiveRunsView = Omit<LiveRuns, keyof PresentedJson>
type SummaryView = Omit<Summary, keyof PresentedJson>

const ENDED = ['succeeded', 'failed', 'cancelled', 'abandoned'] as const

/** `summary`; null where nothing ever ran. */
export async function loadSummary(
  context: AssessContext | null,
  ageMs?: number,
): Promise<Presented<SummaryView>> {
  const { classified, totals, found } = context
    ? await readSummary(context, ageMs)
    : { classified: NOTHING_LIVE, totals: null, found: NOTHING_FOUND }
  const { view, sections, ...live } = presentLiveRuns(classified)
  const ended = Object.fromEntries(
    ENDED.map((status) => [status, totals?.[status] ?? 0]),
  ) as SummaryView['ended']
  const counts = ENDED.map((status) => `${ended[status]} ${status}`).join(', ')
  const hasEnded = ENDED.some((status) => ended[status] > 0)
  const endedRuns = hasEnded ? `Ended runs: ${counts}.` : null
  const other = otherAttention(found.attention, new Set(found.groups.runs))
  return {
    view: { ...view, ended },
    severity: found.severity,
    summary: [live.summary, other].filter(Boolean).join(' '),
    sections: [
      ...sections,
      ...[endedRuns, other].flatMap((text) =>
        text === null ? [] : [{ heading: null, sentences: [[text]] }],
      ),
    ],
  }
}

async function readSummary(given: AssessContext, ageMs: number | undefined) {
  const context = { ...given, policyOf: withAbandonAfter(given.policyOf, ageMs) }
  const assessment = await assess(context)
  const [totals, found] = await Promise.all([
    context.store.runTotals(),
    loadAttention(context, assessment),
  ])
  return { classified: classify(assessment), totals, found }
}

/** Resumable and dead runs side by side, the active ones as a number. */
export function presentLiveRuns(classified: ClassifiedRuns): Presented<LiveRunsView> {
  const { now, total, active, resumable, dead, severity } = classified
  const paused = active.filter(({ health }) => health.state === 'paused')
  const stuck = active.filter((one) => one.health.severity !== 'ok' || paused.includes(one))
  const view = {
    total,
    active: active.map(assessedRunView),
    resumable: resumable.map(assessedRunView),
    dead: dead.map(assessedRunView),
  }
  if (total === 0) {
    const summary = 'No run is live: nothing to resume, nothing to clean.'
    return { view, severity, summary, sections: [{ heading: null, sentences: [[summary]] }] }
  }
  const also = paused.length > 0 ? ` (${paused.length} paused)` : ''
  const parts = [
    `${active.length} active${also}`,
    `${resumable.length} resumable`,
    `${dead.length} dead`,
  ]
  const title = `${plural(total, 'live run')}: `
  const summary = `${title}${parts.join(', ')}.`
  const counts: Sentence = [
    `${title}${parts[0]}, `,
    { text: parts[1]!, style: resumable.length > 0 ? 'good' : undefined },
    ', ',
    { text: parts[2]!, style: dead.length > 0 ? 'bad' : undefined },
    '.',
  ]
  const starter = nextStartCondition(resumable.map(({ run }) => run))
  return {
    view,
    severity,
    summary,
    sections: [
      {
        heading: null,
        sentences: [
          counts,
          ...firstSentences(stuck.map(stuckSentence), '`unstuck status` has all'),
        ],
      },
      ...runsSections(`Resumable: continue when ${starter}`, resumable, now),
      ...runsSections('Dead: no progress, and older than the policy allows', dead, now),
    ],
  }
}

/** A run that is paused, or neither resumable nor dead and not worked on either. */
function stuckSentence({ run, health }: AssessedRun): Sentence {
  const { state, because, command } = health
  return [`${runName(run)} of ${run.source} is ${state}: ${because}. ${introduceCommand(command)}`]
}

function runsSections(heading: string, all: readonly AssessedRun[], now: Millis): Section[] {
  if (all.length === 0) return []
  const runs = all.slice(0, ROWS_MAX)
  const reasons = runs.map(({ run, decision, health }): Sentence => {
    const reason = formatReason(decisionView(run, decision))
    const see = health.severity === 'ok' ? '' : ` ${introduceCommand(health.command)}`
    return [{ text: `${runName(run)}: ${reason}${see}`, style: 'dim' }]
  })
  // Tables of users do not count them.
  const unchanged = right(
    'UNCHANGED',
    ({ run, evidence }: AssessedRun) => (run.traits.hasTargets ? String(evidence.unchanged) : '–'),
    5,
  )
  return [
    {
      heading,
      table: makeTable(runs, [
        RUN.id,
        RUN.source,
        right('AGE', ({ evidence }) => formatAge(evidence.ageMs)),
        RUN.done,
        { ...RUN.items, optional: 3 },
        ...(runs.some(({ run }) => run.traits.hasTargets) ? [unchanged] : []),
        right('SKIPPED', ({ evidence }) => String(evidence.skipped), 4),
        left('CHECKPOINT', formatCheckpoint, 2),
        right('LAST ACTIVITY', ({ run }) => formatAgo(knownTime(run, run.lastActivityAt), now), 1),
      ]),
      sentences: [...reasons, ...omittedRows(all, '`--json` has all')],
    },
  ]
}

function formatCheckpoint({ run, target }: AssessedRun): string {
  if (target && target.page > 0) return `page ${target.page}`
  // A row of a user's own table is only counted.
  if (target) return target.seq > 0 ? 'yes' : 'none'
  return run.counts.pages > 0 ? plural(run.counts.pages, 'page') : 'none'
}

export type CleaningRequest = {
  readonly dryRun: boolean
  /** False if the operator declined; the default is `!dryRun`. */
  readonly isDone?: boolean
  readonly runs?: readonly RunId[] | undefined
  readonly age?: string | undefined
}

export type CleaningView = Omit<Cleaning, keyof PresentedJson | 'actions' | 'undo'>

/** `clean`: the summary, then which dead runs would be marked, or were. */
export function presentCleaning(
  classified: ClassifiedRuns,
  cleaned: readonly Verdict[],
  request: CleaningRequest,
): Presented<CleaningView> {
  const { dryRun, isDone = !dryRun, runs = [], age } = request
  const { dead } = classified
  const names = new Map(dead.map(({ run }) => [run.id, runName(run)]))
  const { view, sections, ...summary } = presentLiveRuns(classified)
  const planned = dead.map((assessed) => toRunVerdict(assessed, false)).filter(isPlanned)
  const views = cleaned.map((verdict) => verdictView(verdict, true))
  const applied = views.filter(({ outcome }) => outcome === 'applied').length
  const result = isDone ? describeDone(cleaned, applied) : describePlan(planned, dead.length)
  const unchanged = dryRun ? `Nothing was changed. ${result}` : 'Nothing was changed.'
  const report = cleanedSection(isDone ? result : unchanged, views)
  return {
    view: {
      ...view,
      dead: view.dead.map((run) => ({
        ...run,
        actions: isDone ? [] : [cleanAction({ runs: [run.id], names: [run.subject.name] })],
      })),
      cleaned: views,
      count: isDone ? applied : planned.length,
      dryRun,
      plan: planHash(planned),
      command: unstuckCommand(
        'clean',
        runs.map((id) => names.get(id) ?? shortId(id)),
        { yes: true, age },
      ),
    },
    severity: dead.length > applied ? worstSeverity([summary.severity, 'attention']) : 'ok',
    summary: result,
    sections: [...sections, ...(dead.length > 0 ? [report] : [])],
    actions: isDone || dead.length === 0 ? [] : [cleanAction({ age }, dead.length)],
    undo: isDone ? undoByRevert(revertibleRuns(views)) : null,
    question: isDone ? null : questionOf(planned),
  }
}

const CLEANED = '“Timeout – auto-cleaned”'

/** Rows of a user's own table get a status of that table. */
function finalStatus(verdicts: readonly Verdict[]): string {
  return verdicts.some(({ row }) => row) ? 'ended' : CLEANED
}

function describePlan(planned: readonly Verdict[], dead: number): string {
  if (planned.length === 0) return dead === 0 ? 'No run is dead.' : 'No dead run can be marked.'
  return `${plural(planned.length, 'dead run')} would be marked as ${finalStatus(planned)}. Nothing is deleted.`
}

function describeDone(cleaned: readonly Verdict[], applied: number): string {
  const late = cleaned.length - applied
  const marked = `${plural(applied, 'run')} marked as ${finalStatus(cleaned)}. Nothing was deleted.`
  return late === 0 ? marked : `${marked} ${late} left alone.`
}

function questionOf(planned: readonly Verdict[]): string | null {
  if (planned.length === 0) return null
  return `Mark ${plural(planned.length, 'dead run')} as ${finalStatus(planned)}?`
}

/** `result`: about all of them. */
function cleanedSection(result: string, cleaned: readonly VerdictView[]): Section {
  const isMarked = ({ outcome }: VerdictView): boolean => outcome === 'applied'
  const marked = cleaned.filter(isMarked).map((one) => ({ run: one.run, name: nameOf(one) }))
  // Runs that were not marked come first: they may need attention.
  const sorted = cleaned.toSorted((a, b) => Number(isMarked(a)) - Number(isMarked(b)))
  return {
    heading: null,
    sentences: [[result], ...verdictList(sorted, '`--json`'), ...undoSentences(marked)],
  }
}

export type CleanSelection = {
  /** Of the named runs, those that are dead. */
  readonly classified: ClassifiedRuns
  /** Of the named runs, those that have ended. */
  readonly ended: readonly Run[]
}

/** Selects the named runs. Throws for one that is neither dead nor, for deleting, ended. */
export function selectRuns(
  classified: ClassifiedRuns,
  runs: readonly Run[],
  isDelete: boolean,
): CleanSelection {
  const named = new Map<RunId, Run>()
  for (const run of runs) {
    throwUnlessDead(run, classified, isDelete)
    named.set(run.id, run)
  }
  const dead = classified.dead.filter(({ run }) => named.has(run.id))
  const ended = [...named.values()].filter(({ status }) => !isLive(status))
  return {
    classified: { ...classified, total: dead.length, active: [], resumable: [], dead },
    ended,
  }
}

function throwUnlessDead(named: Run, classified: ClassifiedRuns, isDelete: boolean): void {
  const { id, status } = named
  const short = runName(named)
  if (classified.dead.some(({ run }) => run.id === id) || (isDelete && !isLive(status))) return
  if (!isLive(status)) throw new UsageError(`Run ${short} is ${status}: there is nothing to clean.`)
  const assessed = [...classified.active, ...classified.resumable].find(({ run }) => run.id === id)
  throw new UsageError(
    `Run ${short} is not dead${assessed ? `: ${assessed.decision.because}` : ''}. ` +
      `More: \`${unstuckCommand('explain', [short])}\`; ${cancelHint(named)}.`,
  )
}
