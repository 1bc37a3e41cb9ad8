import { hash } from 'node:crypto'
import { worstSeverity, type Severity } from '../core/decide/health.ts'
import { type Id } from '../core/model/id.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import { humanizeDuration, parseDuration, type Millis } from '../core/model/time.ts'
import type { Verdict } from '../core/model/verdict.ts'
import type { AssessedRun, Assessment } from '../core/recovery/assess.ts'
import type { Recovery } from '../core/recovery/recover.ts'
import {
  right,
  flex,
  omittedRows,
  ROWS_MAX,
  type Section,
  type Sentence,
  makeTable,
} from '../lib/text/sentence.ts'
import { formatAge, formatAgo, formatProcessCell, plural, knownTime } from './format.ts'
import { recoverAction } from './bulk-actions.ts'
import type { Presented } from './presented.ts'
import { leftoverSection, leftoverViews, type Leftover } from './leftover-processes.ts'
import { RUN } from './runs.ts'
import { revertibleRuns, undoByRevert, undoSentences } from './action-result.ts'
import { assessedRunView, isPlanned, verdictList, verdictView } from './verdict.ts'
import type {
  Presented as PresentedJson,
  Recovery as RecoveryResult,
  Verdict as VerdictView,
} from './results.ts'

export type RecoveryRequest = {
  readonly dryRun: boolean
  /** False while an operator has not confirmed; the default is `!dryRun`. */
  readonly isDone?: boolean
  readonly timeout?: string | undefined
  readonly sources?: readonly string[]
  readonly groups?: readonly string[]
  /** Processes of earlier copies on this machine, and what was ended of them. */
  readonly leftovers?: readonly Leftover[]
  readonly ended?: readonly Leftover[]
}

export type RecoveryView = Omit<RecoveryResult, keyof PresentedJson | 'undo'>

/** Where there is no database yet. */
export const NO_RECOVERY: Recovery = {
  assessment: { now: 0, runs: [], workers: [], observations: [], unreadable: [], severity: 'ok' },
  verdicts: [],
}

/** `recover`, the recovery page, and `top`. */
export function presentRecovery(
  { assessment, verdicts }: Recovery,
  request: RecoveryRequest,
): Presented<RecoveryView> {
  const { dryRun, isDone = !dryRun, timeout, sources = [], groups = [] } = request
  const { leftovers = [], ended = null } = request
  const planned = verdicts.filter(isPlanned)
  const views = [...planned, ...verdicts.filter((one) => !isPlanned(one))].map((verdict) =>
    verdictView(verdict, isDone),
  )
  const [toApply, attention] = [views.slice(0, planned.length), views.slice(planned.length)]
  const applied = planned.filter((verdict) => verdict.applied)
  const { unreadable } = assessment
  const runs = assessment.runs.filter(
    ({ run }) => sources.length === 0 || sources.includes(run.source),
  )
  const now = assessment.now === 0 ? Date.now() : assessment.now
  const processes = leftoverViews(leftovers, now, ended)
  const left = processes.filter(({ outcome }) => outcome !== 'ended').length
  const toEnd = isDone ? 0 : left
  const notes = [
    noteOnTimeout(assessment, timeout),
    isDone ? null : noteOnUndo(assessment, toApply),
  ]
  const note = notes.filter((one) => one !== null).join(' ') || null
  return {
    view: {
      active: runs.map(assessedRunView),
      activeTotal: runs.length,
      verdicts: views,
      total: views.length,
      planned: planned.length,
      applied: applied.length,
      count: isDone ? applied.length + processes.length - left : planned.length + left,
      processes,
      unreadable: [...unreadable],
      note,
      dryRun,
      plan: planHash(planned, leftovers),
      command: unstuckCommand('recover', [], {
        yes: true,
        timeout,
        source: sources,
        group: groups,
      }),
    },
    severity: worstSeverity([
      severityOf(assessment, verdicts, request),
      left > 0 ? 'attention' : 'ok',
    ]),
    summary: summarize(
      { planned: planned.length, applied: applied.length, total: views.length, processes },
      isDone,
    ),
    sections: [
      ...unreadable.map(unreadableSection),
      ...(note === null ? [] : [{ heading: null, sentences: [[`Note: ${note}`]] }]),
      activeSection(runs, assessment.now),
      isDone ? appliedSection(planned, toApply, attention) : plannedSection(toApply, attention),
      ...(processes.length > 0 ? [leftoverSection(processes, now)] : []),
      ...attentionSections(attention),
      ...(isDone ? [] : [{ heading: null, sentences: [['Nothing was changed.']] }]),
    ],
    actions:
      isDone || planned.length + toEnd === 0
        ? []
        : [recoverAction({ timeout, sources, groups }, planned.length + toEnd)],
    undo: isDone ? undoByRevert(revertibleRuns(views)) : null,
    question: isDone ? null : questionOf(planned.length, toEnd),
  }
}

/** What goes back in the queue of the user's own program cannot be taken from there again. */
function noteOnUndo({ runs }: Assessment, toApply: readonly VerdictView[]): RecoveryView['note'] {
  const own = new Set(runs.filter(({ run }) => run.traits.origin).map(({ run }) => run.id))
  const requeued = toApply.filter(
    ({ run, action }) => own.has(run) && (action === 'resume' || action === 'replan'),
  )
  if (requeued.length === 0) return null
  return (
    `${plural(requeued.length, 'row')} of your own would go back in the queue, which cannot be reverted; ` +
    '`unstuck history` keeps what stood there. What is ended can be reverted with `unstuck revert`.'
  )
}

/** A worker is silent after its lease: a shorter timeout finds nothing sooner. */
function noteOnTimeout(
  { workers, runs }: Assessment,
  timeout: string | undefined,
): RecoveryView['note'] {
  const timeoutMs = parseDuration(timeout)
  const leases = [...workers.map(({ worker }) => worker), ...runs.map(({ policy }) => policy)]
  const leaseMs = Math.max(0, ...leases.map((one) => one.leaseMs))
  if (timeoutMs === null || timeoutMs >= leaseMs) return null
  return (
    `the timeout of ${humanizeDuration(timeoutMs)} is below the lease of ${humanizeDuration(leaseMs)}. It only narrows the ` +
    'selection: a worker counts as silent when its lease has passed, not before.'
  )
}

/** A preview after its verdicts were applied. A verdict that was not reached again changed meanwhile. */
export function afterRecovery(preview: Recovery, applied: readonly Verdict[]): Recovery {
  const idOf = ({ run, target }: Verdict): string => target ?? run
  const byId = new Map(applied.map((verdict) => [idOf(verdict), verdict]))
  const verdicts = preview.verdicts.map((verdict) => byId.get(idOf(verdict)) ?? verdict)
  return { ...preview, verdicts }
}

/** What the verdicts of a preview that recovery applies by itself are about. */
export function plannedSubjects({ verdicts }: Recovery): Set<Id> {
  return new Set(verdicts.filter(isPlanned).map(({ run, target }) => target ?? run))
}

const ACTIVE_MAX = 200
const VERDICTS_MAX = 500

/** The same for HTTP: of long lists the first entries, with the totals. */
export function boundedRecovery(presented: Presented<RecoveryView>): Presented<RecoveryView> {
  const { view } = presented
  const active = view.active.slice(0, ACTIVE_MAX)
  return { ...presented, view: { ...view, active, verdicts: view.verdicts.slice(0, VERDICTS_MAX) } }
}

/** Before recovery the state of what was selected; after it, what is left. */
function severityOf(
  { severity, unreadable, runs }: Assessment,
  verdicts: readonly Verdict[],
  { dryRun, timeout, sources = [], groups = [] }: RecoveryRequest,
): Severity {
  const isUnfiltered = sources.length + groups.length === 0 && timeout === undefined
  // What the dead workers of a paused source hold can wait.
  const paused = new Set(
    runs.filter(({ health }) => health.state === 'paused').map((one) => one.run.id),
  )
  const isListed = dryRun
    ? verdicts.some(({ run }) => !paused.has(run))
    : verdicts.some(isUnresolved)
  return worstSeverity([
    dryRun && (isUnfiltered || isListed) ? severity : 'ok',
    isListed || unreadable.length > 0 ? 'attention' : 'ok',
  ])
}

function isUnresolved({ action, applied, blockedBy }: Verdict): boolean {
  if (blockedBy !== undefined) return true
  return ['alert', 'park', 'hold', 'fail'].includes(action) || (action === 'abandon' && !applied)
}

function summarize(
  {
    planned,
    applied,
    total,
    processes,
  }: Pick<RecoveryView, 'planned' | 'applied' | 'total' | 'processes'>,
  isDone: boolean,
): string {
  if (total + processes.length === 0) return 'Nothing to recover.'
  const [late, attention] = [planned - applied, total - planned]
  const parts = [
    planned === 0 && total > 0 && 'Nothing to apply.',
    planned > 0 &&
      `${plural(isDone ? applied : planned, 'verdict')} ${isDone ? '' : 'would be '}applied.`,
    isDone && late > 0 && `${late} not applied: changed meanwhile.`,
    ...describeProcesses(processes),
    attention > 0 && `${attention} ${attention === 1 ? 'needs' : 'need'} a decision.`,
  ]
  return parts.filter((part) => part !== false).join(' ')
}

function describeProcesses(processes: RecoveryView['processes']): string[] {
  const counts = { planned: 0, ended: 0, running: 0 }
  for (const { outcome } of processes) counts[outcome]++
  const many = (count: number): string => plural(count, 'process', 'processes')
  return [
    ...(counts.planned > 0 ? [`${many(counts.planned)} of earlier copies would be ended.`] : []),
    ...(counts.ended > 0 ? [`Ended ${many(counts.ended)} of earlier copies.`] : []),
    ...(counts.running > 0 ? [`${many(counts.running)} of earlier copies not ended.`] : []),
  ]
}

function questionOf(planned: number, processes: number): string | null {
  if (planned + processes === 0) return null
  const apply = planned === 1 ? 'Apply this verdict' : `Apply these ${planned} verdicts`
  const end = `nd ${plural(processes, 'process', 'processes')}`
  if (processes === 0) return `${apply}?`
  return planned === 0 ? `E${end}?` : `${apply} and e${end}?`
}

function unreadableSection({ table, because }: { table: string; because: string }): Section {
  const sentence: Sentence = [
    { text: `Not all can be seen: ${table} cannot be read. `, style: 'warn' },
    because,
  ]
  return { heading: null, sentences: [sentence] }
}

function activeSection(active: readonly AssessedRun[], now: Millis): Section {
  if (active.length === 0) return { heading: null, sentences: [['No run is live.']] }
  return {
    heading: plural(active.length, 'live run'),
    table: makeTable(active.slice(0, ROWS_MAX), [
      RUN.id,
      RUN.source,
      RUN.status,
      RUN.done,
      right('AGE', ({ evidence }) => formatAge(evidence.ageMs), 2),
      flex('OWNER', ({ owner }) => (owner ? formatProcessCell(owner.evidence) : 'no owner'), 3),
      right(
        'ACTIVITY',
        ({ run, owner }) =>
          formatAgo(
            owner ? now - owner.evidence.heartbeatAgeMs : knownTime(run, run.lastActivityAt),
            now,
          ),
        1,
      ),
    ]),
    sentences: omittedRows(active, '`unstuck runs` lists them'),
  }
}

function plannedSection(
  toApply: readonly VerdictView[],
  attention: readonly VerdictView[],
): Section {
  const sentences = verdictList(toApply, '`--json`')
  return {
    heading: 'Would be applied',
    sentences: sentences.length > 0 ? sentences : [nothing(attention)],
  }
}

export const APPLIED = 'Applied'

function appliedSection(
  planned: readonly Verdict[],
  toApply: readonly VerdictView[],
  attention: readonly VerdictView[],
): Section {
  if (planned.length === 0) return { heading: APPLIED, sentences: [nothing(attention)] }
  return {
    heading: APPLIED,
    sentences: [
      ...verdictList(toApply, '`unstuck history`'),
      ...undoSentences(revertibleRuns(toApply)),
      ...lateSentences(planned.filter(({ applied }) => !applied)),
    ],
  }
}

function nothing(attention: readonly VerdictView[]): Sentence {
  return [attention.length > 0 ? 'Nothing by itself.' : 'Nothing to recover.']
}

function lateSentences(late: readonly Verdict[]): Sentence[] {
  if (late.length === 0) return []
  const isRow = late.some(({ row, evidence }) => row !== undefined || 'label' in evidence)
  const or = isRow ? ', or your database rejected the write, which the log then shows' : ''
  return [[`${plural(late.length, 'verdict')} not applied: changed meanwhile${or}.`]]
}

function attentionSections(attention: readonly VerdictView[]): Section[] {
  if (attention.length === 0) return []
  const canClean = attention.some(
    ({ action, blockedBy }) => action === 'abandon' && blockedBy === null,
  )
  return [
    {
      heading: 'Needs a decision',
      sentences: [
        ...verdictList(attention, '`--json`'),
        ...(canClean ? [['`unstuck clean` marks dead runs.']] : []),
      ],
    },
  ]
}

/**
 * A short name for what would be applied, in any order. A preview has it, so that a confirmed action applies exactly
 * that or is refused.
 */
export function planHash(planned: readonly Verdict[], leftovers: readonly Leftover[] = []): string {
  const lines = planned.map(({ run, target, action, from, to }) =>
    JSON.stringify([run, target, action, from, to]),
  )
  // A command starts and ends processes all the time: the plan names the source.
  for (const { lock } of leftovers) lines.push(JSON.stringify([lock.source, lock.worker]))
  return hash('sha256', lines.sort().join('\n')).slice(0, 16)
}
