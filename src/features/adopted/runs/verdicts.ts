import { assessLiveness, TRUSTED_OBSERVER } from '../../../core/decide/liveness.ts'
import { isLive, type RunStatus } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import { TARGET_STATUS_AFTER, type Action } from '../../../core/model/verdict.ts'
import type { PendingVerdict, RunMove } from '../../../core/store/store.ts'
import { storedText } from '../../../core/store/stored-text.ts'
import { applyOperation, applyOperations, type AdoptedContext, type RowTask } from './intents.ts'
import type { Mapping } from '../mapping.ts'
import type { ResolvedRow } from './row-run.ts'
import type { RowChange } from '../table/table.ts'
import { isWaiting, requireStatusValue, statusValueAfter } from './status-mapping.ts'

const MANUAL_ATTEMPTS = 5
/** Verdicts per batch: saves transactions, and limits the open intents of a killed process. */
const BATCH_SIZE = 100

/** Applies each verdict if its row has not changed. Returns which were applied by this call. */
export async function applyVerdictsToRows(
  context: AdoptedContext,
  verdicts: readonly PendingVerdict[],
  actor: string,
): Promise<boolean[]> {
  const applied: boolean[] = []
  for (let at = 0; at < verdicts.length; at += BATCH_SIZE)
    applied.push(...(await applyBatch(context, verdicts.slice(at, at + BATCH_SIZE), actor)))
  return applied
}

async function applyBatch(
  context: AdoptedContext,
  verdicts: readonly PendingVerdict[],
  actor: string,
): Promise<boolean[]> {
  const tasks: (RowTask | null)[] = []
  for (const verdict of verdicts) tasks.push(await toTask(context, verdict, actor))
  const done = (
    await applyOperations(
      context,
      tasks.filter((task) => task !== null),
    )
  ).values()
  return tasks.map((task) => task !== null && done.next().value!)
}

/** Returns the change for a verdict; null if it needs none, if the row has changed, or if no status is mapped for it. */
async function toTask(
  { rows }: AdoptedContext,
  { held: { run, target, row }, decision, evidence }: PendingVerdict,
  actor: string,
): Promise<RowTask | null> {
  const { action, because } = decision
  if (TARGET_STATUS_AFTER[action] === undefined || !row) return null
  const tableRun = run.kind === 'crawl' ? run : null
  const resolved = await rows.resolveUnchanged(row, evidence.rowHash, tableRun)
  if (!resolved) return null
  const { mapping } = resolved.table
  const found = statusValueAfter(mapping, action)
  if ('missing' in found) {
    rows.logOnce(found.missing)
    return null
  }
  const operation = {
    actor,
    action,
    because,
    evidence: withoutRowHash(evidence),
    target: target.id,
    change: changeFor(mapping, action, { status: found.value, because, now: resolved.now }),
    before: { worker: target.worker, page: target.page },
    isAutomatic: true,
  }
  return { resolved: { ...resolved, run, target }, operation }
}

/** Leaves the hash out of the audit entry, which has the values of the row instead. */
function withoutRowHash({ rowHash: _rowHash, ...evidence }: PendingVerdict['evidence']): unknown {
  return evidence
}

/**
 * Applies a verdict on a run, or an action of an operator. An operator ends a row in whatever state it is, so this is
 * tried again if the row changed meanwhile.
 */
export async function moveRow(context: AdoptedContext, move: RunMove): Promise<boolean> {
  const attempts = isManual(move) ? MANUAL_ATTEMPTS : 1
  for (let tries = 1; tries <= attempts; tries++) if (await tryMove(context, move)) return true
  return false
}

/** Returns whether an operator asked for it. A verdict has evidence. */
function isManual({ evidence, expected }: RunMove): boolean {
  return evidence === null && expected.row === undefined
}

async function tryMove(context: AdoptedContext, move: RunMove): Promise<boolean> {
  const { rows } = context
  const { run: id, actor, action, because, evidence, to, expected } = move
  const hasVerdict = expected.row !== undefined
  const resolved = await (expected.row
    ? rows.resolveUnchanged(expected.row, expected.row.rowHash, null)
    : rows.resolveId(id))
  if (!resolved) return false
  if (!isLive(resolved.run.status) || (!hasVerdict && !meetsPreconditions(resolved, expected)))
    return false
  const { mapping } = resolved.table
  const isAutomatic = evidence !== null
  const found = isAutomatic
    ? statusValueAfter(mapping, ACTION_FOR[to])
    : { value: requireStatusValue(mapping, ACTION_FOR[to]) }
  if ('missing' in found) {
    rows.logOnce(found.missing)
    return false
  }
  const change = changeFor(mapping, ACTION_FOR[to], {
    status: found.value,
    because,
    now: resolved.now,
  })
  const operation = {
    actor,
    action,
    because,
    evidence,
    change,
    target: null,
    isAutomatic,
    // Its time in the queue begins now.
    reopens: !isAutomatic && to === 'interrupted',
  }
  return applyOperation(context, resolved, operation)
}

/** The action that leads to a status. */
const ACTION_FOR = {
  interrupted: 'resume',
  cancelled: 'cancel',
  abandoned: 'abandon',
  failed: 'fail',
} as const satisfies Partial<Record<RunStatus, Action | 'cancel'>>

/** Checks the preconditions. A lost worker does not count as an owner. */
function meetsPreconditions({ run, observation }: ResolvedRow, only: RunMove['expected']): boolean {
  const { status, lastActivityAt, resumes, isUnclaimed } = only
  const isClaimed =
    observation !== null &&
    !['gone', 'silent'].includes(assessLiveness(observation.evidence, TRUSTED_OBSERVER).liveness)
  return (
    (status === undefined || status === run.status) &&
    (lastActivityAt === undefined || lastActivityAt === run.lastActivityAt) &&
    (resumes === undefined || resumes === run.resumes) &&
    !(isUnclaimed && isClaimed)
  )
}

/** No worker has the row. */
export const NO_WORKER = { owner: null, heartbeatAt: null, pid: null } as const

/** The change for a status: a waiting row has no owner, an ended row has its end and reason. */
export function changeFor(
  mapping: Mapping,
  action: Action | 'cancel',
  { status, because, now }: { status: string; because: string; now: Millis },
): RowChange {
  if (isWaiting(mapping, status)) return { status, ...NO_WORKER }
  const error = storedText(`Unstuck: ${because}`)
  return action === 'hold' ? { status, error } : { status, finishedAt: now, error }
}
