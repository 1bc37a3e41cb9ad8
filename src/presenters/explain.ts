import { workerSeverity, worstSeverity, type Severity, type Health } from '../core/decide/health.ts'
import { shortId, type TargetId } from '../core/model/id.ts'
import { policyForGroup } from '../core/model/policy.ts'
import { optionNameOf } from '../lib/validate/policy-options.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { describeOrigin, runName } from '../core/model/traits.ts'
import type { Target } from '../core/model/target.ts'
import type { Millis } from '../core/model/time.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import type { Decision } from '../core/model/verdict.ts'
import { plainText, type Section, type Sentence } from '../lib/text/sentence.ts'
import { settingsTable, type SourcePolicies } from './policy-settings.ts'
import { decisionSentence, decisionView } from './verdict.ts'
import {
  evidenceSentences,
  factsOf,
  auditView,
  formatPage,
  ownerView,
  runView,
  targetView,
} from './view.ts'
import {
  formatAge,
  formatAgo,
  formatDoneOfTotal,
  howFar,
  knownPages,
  formatItems,
  formatRunStatus,
  formatTargetStatus,
  originOf,
  plural,
  sentenceCase,
  targetName,
  targetRef,
} from './format.ts'
import { acknowledgedSentence } from './acknowledged.ts'
import { actionsOfTargets } from './allowed-target-actions.ts'
import { stepsOutOf } from './stuck-rows.ts'
import { auditSentence } from './history.ts'
import type { Setting } from './results.ts'
import type { Presented } from './presented.ts'
import { describeNextStart, describeState } from './sources.ts'
import { loadSource } from './find.ts'
import { decide, type Snapshot } from '../core/decide/recovery.ts'
import { describeContinuation, loadLastStart } from './continuation.ts'
import { describeStep } from './allowed-actions.ts'
import { loadFailureCause, stepsAfterFailure } from './failure-cause.ts'
import { explainNextSteps, isContinuation, type NextSteps } from './next-steps.ts'
import { assessLiveness, assessProgress, type ObserverHealth } from '../core/decide/liveness.ts'
import type { AuditEntry, Store, WorkerObservation } from '../core/store/store.ts'
import {
  targetForDecision,
  assessRun,
  runSnapshot,
  targetSnapshot,
  type Owner,
} from '../core/recovery/assess.ts'

/** Why a run or a target is in its state, and what comes next. */
export type Explanation = {
  readonly run: Run
  /** Null when the run as a whole is explained. */
  readonly target: Target | null
  readonly decision: Decision
  /** Why a run failed; null for any other run, and for a target. */
  readonly cause: string | null
  /** Of a live run that is explained as a whole; else null. */
  readonly health: Health | null
  readonly owner: Owner | null
  readonly outlook: NextSteps
  /** A pause of its source and its next start, when the run has ended; else null. */
  readonly source: string | null
  /** Its audit entries, newest first. */
  readonly trail: readonly AuditEntry[]
  readonly now: Millis
}

const AUDIT_MAX = 5

export async function explainRun(context: OperatorContext, run: Run): Promise<Explanation> {
  const { store } = context
  const assessed = await assessRun(context, run)
  const { decision, policy } = assessed
  // A worker of its source has nothing to do with a run that has ended.
  const owner = isLive(run.status) ? assessed.owner : null
  const held = assessed.target?.status === 'in_progress' ? targetSnapshot(assessed.target) : null
  const now = await store.now()
  const snapshot = { run: runSnapshot(run), target: held, owner: owner?.assessment ?? null }
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  const outlook = nextStepsFor(run, snapshot, decision, policy, now)
  const { state } = await loadSource(store, run.source)
  const changes = await changesOf(context, run, describeNextStart(run, state, now), outlook)
  return {
    run,
    target: null,
    source: isLive(run.status) ? null : describeState(state, now),
    decision,
    cause: await loadFailureCause(store, run),
    health: isLive(run.status) ? assessed.health : null,
    owner,
    outlook: { ...outlook, changes: [...changes, ...stepsOutOf(assessed)] },
    trail,
    now,
  }
}

export async function explainTarget(
  context: OperatorContext,
  id: TargetId,
): Promise<Explanation | null> {
  const { store, policyOf, observer } = context
  const target = await store.target(id)
  const run = target && (await store.run(target.run))
  if (!target || !run) return null
  const held = await ownerOf(store, target, observer)
  const policy = policyForGroup(policyOf(run), target.group)
  const now = await store.now()
  const idleMs = now - target.lastActivityAt
  const owner = held && {
    ...held,
    assessment: assessProgress(held.assessment, idleMs, policy.maxSilenceMs),
  }
  const snapshot: Snapshot = {
    run: runSnapshot(run),
    target: targetSnapshot(await targetForDecision(store, target)),
    owner: held?.assessment ?? null,
  }
  const decision = decide(snapshot, policy, now)
  const trail = await store.audit({ run: run.id, target: id, newestFirst: true, limit: AUDIT_MAX })
  const nextSteps = nextStepsFor(run, snapshot, decision, policy, now)
  const cause = targetCause(target)
  const [actions] = cause === null ? [[]] : await actionsOfTargets(store, [target])
  const steps = actions!.filter(({ name }) => name === 'reset' || name === 'unpark')
  const outlook = steps.length > 0 ? { ...nextSteps, changes: steps.map(describeStep) } : nextSteps
  return { run, target, decision, cause, health: null, owner, outlook, source: null, trail, now }
}

/** Returns why a target needs attention; null for any other. */
function targetCause({ status, lastError }: Target): string | null {
  if (status !== 'failed' && status !== 'stuck' && status !== 'parked') return null
  const what =
    status === 'stuck' ? 'it is stuck' : status === 'parked' ? 'it was parked' : 'it failed'
  return lastError === null ? what : `${what}: ${lastError.split('\n', 1)[0]}`
}

/** Of a run that stopped: the commands that start it again, before what else would change it. */
async function changesOf(
  context: OperatorContext,
  run: Run,
  nextStart: string | null,
  { changes }: NextSteps,
): Promise<readonly string[]> {
  if (nextStart !== null || (run.status === 'interrupted' && run.paused === null)) {
    const continuation = nextStart ?? describeContinuation(run, await loadLastStart(context, run))
    return [continuation, ...changes.filter((change) => !isContinuation(change))]
  }
  const steps = run.status === 'failed' ? await stepsAfterFailure(context.store, run) : []
  return steps.length > 0 ? steps : changes
}

/** A verdict that the table has no status for stays unapplied until one is mapped. */
function nextStepsFor(run: Run, ...decided: Parameters<typeof explainNextSteps>): NextSteps {
  const nextSteps = explainNextSteps(...decided)
  const { blockedBy } = decisionView(run, decided[1])
  return blockedBy === null ? nextSteps : { ...nextSteps, changes: [`${blockedBy}.`] }
}

/** Returns the worker that holds the target now; `target.worker` also names the last one. */
async function ownerOf(
  store: Store,
  { worker: id, status }: Target,
  observer: ObserverHealth,
): Promise<Owner | null> {
  if (id === null || status !== 'in_progress') return null
  const found = (await store.observations()).find(
    ({ worker }: WorkerObservation) => worker.id === id,
  )
  return found ? { ...found, assessment: assessLiveness(found.evidence, observer) } : null
}

/** `explain`: why a run or a target is in its state, and what comes next. */
export async function presentExplanation(
  context: OperatorContext,
  settings: SourcePolicies & { readonly preset: string | null },
  runOrTarget: Run | Target,
) {
  const explanation =
    'source' in runOrTarget
      ? await explainRun(context, runOrTarget)
      : (await explainTarget(context, runOrTarget.id))!
  const { run, target, decision, owner, outlook, trail } = explanation
  const cause = explanation.cause && `${sentenceCase(explanation.cause)}.`
  const policy = relevantSettings(settings, explanation)
  return {
    view: {
      run: runView(run),
      target: target && targetView(target),
      cause,
      verdict: decisionView(run, decision),
      owner: owner && ownerView(owner),
      evidence: evidenceSentences(owner?.evidence ?? null),
      facts: owner && factsOf(owner.evidence),
      policy: [...policy],
      changes: [...outlook.changes],
      trail: trail.map(auditView),
    },
    severity: severityOf(explanation),
    summary: cause ?? plainText(decisionSentence(decision)),
    sections: sectionsOf(explanation, policy, settings.preset),
  } satisfies Presented<object>
}

function severityOf({ run, health, target, owner }: Explanation): Severity {
  if (!target) return health?.severity ?? 'ok'
  const needsAttention = ['failed', 'stuck', 'parked'].includes(target.status)
  return worstSeverity([
    needsAttention && target.acknowledgedAt === null ? 'attention' : 'ok',
    owner ? workerSeverity(owner.assessment, 1, run.paused !== null) : 'ok',
  ])
}

function relevantSettings(
  settings: SourcePolicies,
  { run, target, outlook }: Explanation,
): Setting[] {
  const names = new Set(outlook.policy.map((field) => optionNameOf(field)))
  const all = settings.settingsOf(run.source, run).filter(({ name }) => names.has(name))
  const ofGroup = all.filter(({ group }) => group !== null && group === target?.group)
  const configured = new Set(ofGroup.map(({ name }) => name))
  return [...all.filter(({ group, name }) => group === null && !configured.has(name)), ...ofGroup]
}

function sectionsOf(
  explanation: Explanation,
  policy: readonly Setting[],
  preset: string | null,
): Section[] {
  const { run, target, decision, cause, outlook, source, trail, now } = explanation
  const history = trail.map((entry): Sentence => {
    const isOther = !target && entry.target !== null && run.traits.hasTargets
    return auditSentence(
      entry,
      now,
      isOther ? targetName({ ...entry, origin: originOf(entry.before) }) : '',
    )
  })
  const changes = outlook.changes.map((change): Sentence => [`- ${change}`])
  const sections: Section[] = [
    {
      heading: null,
      sentences: target
        ? targetSentences(run, target, now)
        : [...runSentences(run, now), ...(source === null ? [] : [[`Its source: ${source}.`]])],
    },
    { heading: 'What is known', sentences: knownSentences(explanation) },
    {
      heading: cause === null ? 'Verdict' : 'Cause',
      sentences: [
        cause === null
          ? decisionSentence(decision)
          : [{ text: `${sentenceCase(cause)}.`, style: 'bad' }],
      ],
    },
    { heading: cause === null ? 'What would change it' : 'What to do', sentences: changes },
    {
      heading: 'Settings that apply',
      table: policy.length > 0 ? settingsTable(policy, preset) : undefined,
      sentences: [],
    },
    { heading: 'History, newest first', sentences: history },
  ]
  return sections.filter(({ table, sentences }) => table !== undefined || sentences.length > 0)
}

function runSentences(run: Run, now: Millis): Sentence[] {
  const { hasTargets, origin } = run.traits
  const known = knownPages(run.counts, run.traits)
  const pages = hasTargets && known !== null ? ` ${plural(known, 'page')} saved,` : ''
  const sentences: Sentence[] = [
    [
      `Run ${runName(run)} of `,
      { text: run.source, style: 'strong' },
      ': ',
      formatRunStatus(run.status),
      '.',
    ],
  ]
  if (origin) sentences.push([`It is ${describeOrigin(origin)}.`])
  sentences.push([
    `${run.traits.isUndated ? 'Its age is unknown' : `It is ${formatAge(now - run.createdAt)} old`}: ${formatDoneOfTotal(howFar(run))} done,${pages} ` +
      `items: ${formatItems(run)}.`,
  ])
  if (!hasTargets && run.artifacts > 0)
    sentences.push(['It has a checkpoint or an output file to continue from.'])
  if (run.error !== null) sentences.push([{ text: `Error: ${run.error}`, style: 'bad' }])
  if (run.retryOf !== null)
    sentences.push([`It retries run ${shortId(run.retryOf)} from the beginning.`])
  if (run.acknowledgedAt !== null) sentences.push([acknowledgedSentence(run.acknowledgedAt, now)])
  return sentences
}

function targetSentences(run: Run, target: Target, now: Millis): Sentence[] {
  const { key, group, status, page, attempts, crashes, lastError, acknowledgedAt } = target
  const saved =
    page === 0 ? 'No page is saved' : `Page ${formatPage(target, ' of ')} is its last saved one`
  const sentences: Sentence[] = [
    [
      `Target ${targetRef(target)}, `,
      { text: key, style: 'strong' },
      group === null ? ': ' : `, of group ${group}: `,
      formatTargetStatus(status),
      '.',
    ],
    [`It is part of run ${runName(run)} of ${run.source}: `, formatRunStatus(run.status), '.'],
    [`${saved}; ${plural(attempts, 'attempt')}, ${plural(crashes, 'worker')} lost on it since.`],
  ]
  if (lastError !== null) sentences.push([{ text: `Last error: ${lastError}`, style: 'bad' }])
  if (acknowledgedAt !== null) sentences.push([acknowledgedSentence(acknowledgedAt, now)])
  return sentences
}

function knownSentences({ run, target, owner, now }: Explanation): Sentence[] {
  const lastChange: Sentence = [
    !target && run.traits.isUndated
      ? 'When it last changed is not known.'
      : `It last changed ${formatAgo((target ?? run).lastActivityAt, now)}.`,
  ]
  if (owner) {
    const { assessment, evidence, worker } = owner
    const started = evidence.label === undefined
    return [
      [`${sentenceCase(assessment.because)}.`],
      ...evidenceSentences(evidence).map((sentence): Sentence => [sentence]),
      ...(started ? [[`It started ${formatAgo(worker.startedAt, now)}.`]] : []),
      lastChange,
    ]
  }
  if (isLive(run.status))
    return [[run.traits.ownerIsKnown ? 'No worker has it.' : 'No owner is known.'], lastChange]
  const ended = formatAgo(run.finishedAt, now)
  return [
    [`${target ? 'Its run' : 'It'} ended ${ended === 'now' ? 'just now' : ended}.`],
    lastChange,
  ]
}
