import { worstSeverity, type Severity } from '../core/decide/health.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { humanizeDuration, parseDuration, type Millis } from '../core/model/time.ts'
import type { Verdict } from '../core/model/verdict.ts'
import type { AssessedRun, Assessment } from '../core/recovery/assess.ts'
import type { Recovery } from '../core/recovery/recover.ts'
import {
  right,
  flex,
  omittedRows,
  plainText,
  ROWS_MAX,
  type Section,
  type Sentence,
  makeTable,
} from '../lib/text/sentence.ts'
import { formatAge, formatAgo, formatProcessCell, plural, knownTime } from './format.ts'
import { recoverAction } from './bulk-actions.ts'
import type { Presented } from './presented.ts'
import type { Leftover } from '../operator/leftover-processes.ts'
import { leftoverSection, leftoverViews } from './leftover-processes.ts'
import { NOTHING_FOUND, otherAttention, type FoundAttention } from './load-attention.ts'
import { RUN } from './runs.ts'
import { revertibleRuns, undoByRevert, undoSentences } from './action-result.ts'
import { assessedRunView, isPlanned, planHash, verdictList, verdictView } from './verdict.ts'
import type {
  Attention,
  Presented as PresentedJson,
  Recovery as RecoveryResult,
  Verdict as VerdictView,
} from './results.ts'

export type RecoveryRequest = {
  readonly dryRun: boolean
  readonly timeout?: string | undefined
  readonly sources?: readonly string[]
  readonly groups?: readonly string[]
  /** Processes of earlier copies on this machine, and what was ended of them. */
  readonly leftovers?: readonly Leftover[]
  readonly ended?: readonly Leftover[]
  /** Everything that needs attention: before recovery in a preview, else after it. */
  readonly found?: FoundAttention
}

export type RecoveryView = Omit<RecoveryResult, keyof PresentedJson | 'undo'>

const NOTHING = { runs: [], workers: [], locks: [], observations: [], unreadable: [] }
/** Where there is no database yet. */
export const NO_RECOVERY: Recovery = {
  assessment: { now: 0, ...NOTHING, severity: 'ok' },
  verdicts: [],
}

/** `recover`, the recovery page, and `top`. */
export function presentRecovery(
  { assessment, verdicts }: Recovery,
  request: RecoveryRequest,
): Presented<RecoveryView> {
  const { dryRun, timeout, sources = [], groups = [] } = request
  const isDone = !dryRun
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
  const other = describeOthers(isDone ? attention : views, request)
  const selection = { timeout, source: sources, group: groups }
  const command = unstuckCommand('recover', [], { yes: true, ...selection })
  const counts = { total: views.length, planned: planned.length, applied: applied.length }
  const result = summarize({ ...counts, processes }, isDone)
  return {
    view: {
      active: runs.map(assessedRunView),
      activeTotal: runs.length,
      verdicts: views,
      ...counts,
      count: isDone ? applied.length + processes.length - left : planned.length + left,
      processes,
      unreadable: [...unreadable],
      note,
      dryRun,
      plan: planHash(planned, leftovers),
      command,
    },
    severity: worstSeverity([
      severityOf(assessment, verdicts, request),
      left > 0 ? 'attention' : 'ok',
    ]),
    summary: [result, ...other.map(plainText)].join(' '),
    sections: [
      ...unreadable.map(unreadableSection),
      ...(note === null ? [] : [{ heading: null, sentences: [[`Note: ${note}`]] }]),
      activeSection(runs, assessment.now),
      isDone
        ? appliedSection(planned, toApply, attention, other)
        : plannedSection(toApply, attention, other),
      ...(processes.length > 0 ? [leftoverSection(processes, now, command)] : []),
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

/** Of all, or of the named sources, as `status` reports it. Of groups, or by age, only what is listed. */
function severityOf(
  { unreadable, runs }: Assessment,
  verdicts: readonly Verdict[],
  request: RecoveryRequest,
): Severity {
  const { dryRun, sources = [], found = NOTHING_FOUND } = request
  if (isByAge(request)) {
    // What the dead workers of a paused source hold can wait.
    const paused = runs.filter(({ health }) => health.state === 'paused').map(({ run }) => run.id)
    const isOpen = (one: Verdict) => (dryRun ? !paused.includes(one.run) : isUnresolved(one))
    const open = verdicts.filter(isOpen).map(({ run }) => run)
    const listed = dryRun ? runs.filter(({ run }) => open.includes(run.id)) : []
    return worstSeverity([
      ...listed.map(({ health }) => health.severity),
      open.length + unreadable.length > 0 ? 'attention' : 'ok',
    ])
  }
  if (sources.length === 0) return found.severity
  const ofSources = found.live.filter(({ run }) => sources.includes(run.source))
  return worstSeverity([
    ...ofSources.map(({ health }) => health.severity),
    attentionOf(request).length + unreadable.length > 0 ? 'attention' : 'ok',
  ])
}

/** Limited to a part of a run: what needs attention is not about such a selection. */
function isByAge({ timeout, groups = [] }: RecoveryRequest): boolean {
  return timeout !== undefined || groups.length > 0
}

function attentionOf(request: RecoveryRequest): readonly Attention[] {
  const { found = NOTHING_FOUND, sources = [] } = request
  if (isByAge(request)) return []
  return found.attention.filter(({ source }) => sources.length === 0 || sources.includes(source))
}

/** What needs attention beyond these verdicts, the processes and the tables, which have sections of their own. */
function describeOthers(listed: readonly VerdictView[], request: RecoveryRequest): Sentence[] {
  const { groups } = request.found ?? NOTHING_FOUND
  const runs = new Set<string | null>(listed.map(({ run }) => run))
  const sources = new Set(listed.map(({ source }) => source))
  const shown = new Set([
    ...groups.runs.filter(({ run }) => runs.has(run)),
    ...groups.workers.filter(({ source }) => sources.has(source)),
    ...groups.leftovers,
    ...groups.unreadable,
  ])
  const other = otherAttention(attentionOf(request), shown)
  return other === null ? [] : [[other]]
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
  other: readonly Sentence[],
): Section {
  const sentences = verdictList(toApply, '`--json`')
  return {
    heading: 'Would be applied',
    sentences: [...(sentences.length > 0 ? sentences : [nothing(attention)]), ...other],
  }
}

export const APPLIED = 'Applied'

function appliedSection(
  planned: readonly Verdict[],
  toApply: readonly VerdictView[],
  attention: readonly VerdictView[],
  other: readonly Sentence[],
): Section {
  if (planned.length === 0) return { heading: APPLIED, sentences: [nothing(attention), ...other] }
  return {
    heading: APPLIED,
    sentences: [
      ...verdictList(toApply, '`unstuck history`'),
      ...undoSentences(revertibleRuns(toApply)),
      ...lateSentences(planned.filter(({ applied }) => !applied)),
      ...other,
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
