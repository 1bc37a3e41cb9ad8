import { hash } from 'node:crypto'
import { worstSeverity, type Severity } from '../core/decide/health.ts'
import { type Id } from '../core/model/id.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import type { Millis } from '../core/model/time.ts'
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
import { formatAge, formatAgo, formatProcessCell, plural } from './format.ts'
import { recoverAction } from './bulk-actions.ts'
import type { Presented } from './presented.ts'
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
  const planned = verdicts.filter(isPlanned)
  const views = [...planned, ...verdicts.filter((one) => !isPlanned(one))].map((verdict) =>
    verdictView(verdict, isDone),
  )
  const [toApply, attention] = [views.slice(0, planned.length), views.slice(planned.length)]
  const applied = planned.filter((verdict) => verdict.applied)
  const { runs, unreadable } = assessment
  return {
    view: {
      active: runs.map(assessedRunView),
      activeTotal: runs.length,
      verdicts: views,
      total: views.length,
      planned: planned.length,
      applied: applied.length,
      count: isDone ? applied.length : planned.length,
      unreadable: [...unreadable],
      dryRun,
      plan: planHash(planned),
      command: unstuckCommand('recover', [], {
        yes: true,
        timeout,
        source: sources,
        group: groups,
      }),
    },
    severity: severityOf(assessment, verdicts, request),
    summary: summarize(
      { planned: planned.length, applied: applied.length, total: views.length },
      isDone,
    ),
    sections: [
      ...unreadable.map(unreadableSection),
      activeSection(runs, assessment.now),
      isDone ? appliedSection(planned, toApply, attention) : plannedSection(toApply, attention),
      ...attentionSections(attention),
      ...(isDone ? [] : [{ heading: null, sentences: [['Nothing was changed.']] }]),
    ],
    actions:
      isDone || planned.length === 0
        ? []
        : [recoverAction({ timeout, sources, groups }, planned.length)],
    undo: isDone ? undoByRevert(revertibleRuns(views)) : null,
    question: isDone ? null : questionOf(planned.length),
  }
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
  { severity, unreadable }: Assessment,
  verdicts: readonly Verdict[],
  { dryRun, timeout, sources = [], groups = [] }: RecoveryRequest,
): Severity {
  const isUnfiltered = sources.length + groups.length === 0 && timeout === undefined
  const isListed = dryRun ? verdicts.length > 0 : verdicts.some(isUnresolved)
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
  { planned, applied, total }: Pick<RecoveryView, 'planned' | 'applied' | 'total'>,
  isDone: boolean,
): string {
  if (total === 0) return 'Nothing to recover.'
  const [late, attention] = [planned - applied, total - planned]
  const parts = [
    planned === 0 && 'Nothing to apply.',
    planned > 0 &&
      `${plural(isDone ? applied : planned, 'verdict')} ${isDone ? '' : 'would be '}applied.`,
    isDone && late > 0 && `${late} not applied: changed meanwhile.`,
    attention > 0 && `${attention} ${attention === 1 ? 'needs' : 'need'} attention.`,
  ]
  return parts.filter((part) => part !== false).join(' ')
}

function questionOf(planned: number): string | null {
  if (planned === 0) return null
  return planned === 1 ? 'Apply this verdict?' : `Apply these ${planned} verdicts?`
}

function unreadableSection({ table, because }: { table: string; because: string }): Section {
  const sentence: Sentence = [
    { text: `Not all can be seen: ${table} cannot be read. `, style: 'warn' },
    because,
  ]
  return { heading: null, sentences: [sentence] }
}

function activeSection(active: readonly AssessedRun[], now: Millis): Section {
  if (active.length === 0) return { heading: null, sentences: [['No run is active.']] }
  return {
    heading: plural(active.length, 'active run'),
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
          formatAgo(owner ? now - owner.evidence.heartbeatAgeMs : run.lastActivityAt, now),
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
      heading: 'Needs attention',
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
export function planHash(planned: readonly Verdict[]): string {
  const lines = planned.map(({ run, target, action, from, to }) =>
    JSON.stringify([run, target, action, from, to]),
  )
  return hash('sha256', lines.sort().join('\n')).slice(0, 16)
}
