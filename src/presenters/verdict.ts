import { hash } from 'node:crypto'
import { shortId, type RunId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import { describeOrigin, rowName, type RunOrigin } from '../core/model/traits.ts'
import { blockedReason, type Decision, type Verdict } from '../core/model/verdict.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import { LINES_MAX, omitted, plainText, type Sentence } from '../lib/text/sentence.ts'
import { evidenceSentences, factsOf, lastPageView, ownerView, runView } from './view.ts'
import { errorKind } from './fingerprint.ts'
import type { Leftover } from '../operator/leftover-processes.ts'
import { plural, targetName, targetRef } from './format.ts'
import type { AssessedRun as AssessedRunView, Subject } from './records.ts'
import type { Verdict as VerdictView } from './results.ts'

/** `isDone`: recovery was applied, so that what is not applied changed meanwhile. */
export function verdictView(verdict: Verdict, isDone: boolean): VerdictView {
  const { run, source, target, action, because, liveness, from, to } = verdict
  const { key, blockedBy = null } = verdict
  return {
    run,
    source,
    target,
    key,
    action,
    because,
    liveness,
    evidence: evidenceSentences(verdict.evidence),
    facts: factsOf(verdict.evidence),
    from,
    to,
    outcome: outcomeOf(verdict, isDone),
    blockedBy,
    subject: subjectOf(verdict),
  }
}

/** True if recovery applies it by itself. */
export function isPlanned({ blockedBy, needsAttention }: Verdict): boolean {
  return blockedBy === undefined && !needsAttention
}

function outcomeOf(verdict: Verdict, isDone: boolean): VerdictView['outcome'] {
  if (verdict.applied) return 'applied'
  if (verdict.blockedBy !== undefined) return 'blocked'
  if (verdict.needsAttention) return 'needs-attention'
  return isDone ? 'changed-meanwhile' : 'planned'
}

/** `target austin (91bc4f2a) of shop`. A row of a user's own table is a run. */
function subjectOf({ target, key, source, run, row, targetRow: origin }: Verdict): Subject {
  if (row) return rowSubject(run, source, row)
  if (target === null) return runSubject(run, source)
  // The one target of a command has the name of its source.
  const named = { target, origin, key: key === source ? null : key }
  const name = targetRef({ id: target, origin })
  return { kind: 'target', label: `${targetName(named)} of ${source}`, name }
}

function runSubject(run: RunId, source: string): Subject {
  return { kind: 'run', label: `run ${shortId(run)} of ${source}`, name: shortId(run) }
}

function rowSubject(run: RunId, source: string, row: RunOrigin): Subject {
  const named = rowName(row)
  const also = named === null ? ` (${describeOrigin(row)})` : ''
  const name = named ?? shortId(run)
  return { kind: 'row', label: `run ${name} of ${source}${also}`, name }
}

/** What was decided about a run or one of its targets. */
export function decisionView(run: Run, decision: Decision) {
  const { action, because } = decision
  return { action, because, blockedBy: blockedReason(run, decision) }
}

/** `resume: process 4711 on a1 has ended …` */
export function decisionSentence({ action, because }: Decision): Sentence {
  return [{ text: action, style: 'strong' }, `: ${because}.`]
}

/** A live run with its verdict. */
export function assessedRunView({
  run,
  target,
  decision,
  owner,
  evidence,
}: AssessedRun): AssessedRunView {
  const { id, source, traits } = run
  return {
    ...runView(run),
    ...decisionView(run, decision),
    subject: traits.origin ? rowSubject(id, source, traits.origin) : runSubject(id, source),
    owner: owner && ownerView(owner),
    checkpoint: target && lastPageView(target),
    evidence: evidenceSentences(evidence),
    facts: factsOf(evidence),
  }
}

/** `resume target austin (91bc4f2a) of shop (in progress → planned): process 4711 on a1 has ended …` */
export function verdictSentence(view: VerdictView): Sentence {
  return [
    { text: view.action, style: 'strong' },
    ` ${view.subject.label}${moveOf(view)}: ${reasonOf(view)}`,
  ]
}

/** A verdict as a line of the log. */
export function verdictLine(view: VerdictView): string {
  return `recovery: ${plainText(verdictSentence(view))}`
}

/** `recovered 3: 2 rows, 1 target; 1 needs attention`: what a check of a server has done. */
export function recoveredLine(views: readonly VerdictView[]): string {
  const done = views.filter(({ outcome }) => outcome === 'applied')
  const parts = (['row', 'run', 'target'] as const).flatMap((kind) => {
    const count = done.filter(({ subject }) => subject.kind === kind).length
    return count > 0 ? plural(count, kind) : []
  })
  const left = views.filter(({ outcome }) =>
    ['needs-attention', 'blocked'].includes(outcome),
  ).length
  return (
    `recovered ${done.length}` +
    (parts.length > 0 ? `: ${parts.join(', ')}` : '') +
    (left > 0 ? `; ${left} ${left === 1 ? 'needs' : 'need'} attention` : '')
  )
}

/** The reason, and what blocks it. */
export function formatReason({ because, blockedBy }: Pick<VerdictView, 'because' | 'blockedBy'>) {
  return `${because}.${blockedBy === null ? '' : ` ${blockedBy}.`}`
}

function reasonOf({ because, outcome, blockedBy }: VerdictView): string {
  const late = outcome === 'changed-meanwhile' ? ' (not applied: it changed meanwhile)' : ''
  return formatReason({ because: `${because}${late}`, blockedBy })
}

/** ` (in progress → planned)`. A user's own row gets a status of its table. */
function moveOf(view: VerdictView): string {
  const change = formatChange(view)
  const also = view.action === 'retry' ? ', and a new run is queued' : ''
  return change === '' ? '' : ` (${change}${also})`
}

/** `in progress → planned`; empty where no status changes. */
export function formatChange({ from, to, subject }: VerdictView): string {
  return subject.kind === 'row' ? '' : formatMove(from, to)
}

export function formatMove(from: string, to: string): string {
  return from === to ? '' : `${from.replace('_', ' ')} → ${to.replace('_', ' ')}`
}

const EXAMPLES_MAX = 3

/** One list entry per verdict; of more than 20, one per group of similar verdicts. */
export function verdictList(verdicts: readonly VerdictView[], where: string): Sentence[] {
  const entry = (view: VerdictView): Sentence => ['- ', ...verdictSentence(view)]
  if (verdicts.length <= LINES_MAX) return verdicts.map(entry)
  const groups = groupVerdicts(verdicts)
  const left = groups.slice(LINES_MAX).reduce((sum, { length }) => sum + length, 0)
  return [
    ...groups
      .slice(0, LINES_MAX)
      .flatMap((group) => (group.length === 1 ? [entry(group[0]!)] : groupSentences(group))),
    ...(left > 0 ? [omitted(left, `${where} has each of the ${verdicts.length}`)] : []),
  ]
}

function groupSentences(group: readonly VerdictView[]): Sentence[] {
  const first = group[0]!
  const { action, source, subject } = first
  const many = plural(group.length, subject.kind === 'target' ? 'target' : 'run')
  const ids = group
    .slice(0, EXAMPLES_MAX)
    .map(({ key, subject }) => (key === null ? subject.name : `${key} (${subject.name})`))
  return [
    [
      '- ',
      { text: action, style: 'strong' },
      ` ${many} of ${source}${moveOf(first)}: ${reasonOf(first)}`,
    ],
    [{ text: `  For example ${ids.join(', ')}.`, style: 'dim' }],
  ]
}

/** Groups verdicts that differ only in their targets or runs, and in the numbers of their reasons; the largest first. */
function groupVerdicts(verdicts: readonly VerdictView[]): VerdictView[][] {
  const groups = Map.groupBy(verdicts, (view) => {
    const { source, action, from, to, subject, outcome, blockedBy, because } = view
    const kind = subject.kind === 'target'
    return JSON.stringify([source, action, from, to, kind, outcome, blockedBy, errorKind(because)])
  })
  return [...groups.values()].sort((a, b) => b.length - a.length)
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
