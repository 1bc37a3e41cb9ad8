import { cancelHint, refuseDelete, throwIf } from '../../../operator/refusals.ts'
import { isUnchanged } from '../../../operator/revert.ts'
import { RefusedError, unknownRun, unknownTarget, UsageError } from '../../../core/model/errors.ts'
import { shortId, type RunId, type TargetId } from '../../../core/model/id.ts'
import { isLive, type Run } from '../../../core/model/run.ts'
import { describeOrigin, runName } from '../../../core/model/traits.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type {
  AuditInfo,
  DeleteResult,
  ReplanRequest,
  ReplanResult,
  RevertRequest,
  ParkedTarget,
} from '../../../core/store/store.ts'
import { applyOperation, type AdoptedContext } from './intents.ts'
import type { ResolvedRow } from './row-run.ts'
import { allRows, statusValuesIn } from './row-queries.ts'
import { snapshotIn } from './row-hash.ts'
import { changeFor, NO_WORKER } from './verdicts.ts'
import { requireParkedValue, requireStatusValue } from './status-mapping.ts'

/** Operator actions on adopted rows. */

const AUDIT_MAX = 10_000

/** `retry`: from the start, so that it is queued, not interrupted. */
type RowRequest = Omit<ReplanRequest, 'action'> & {
  readonly action: ReplanRequest['action'] | 'retry'
}

/** Puts a row, or rows of a table of targets, back in the queue. */
export async function replanRows(
  context: AdoptedContext,
  request: RowRequest,
): Promise<ReplanResult> {
  const run = await requireRun(context, request.run)
  const resolved = await selectRows(context, run, request)
  if (resolved.length === 0) return { targets: 0, reopened: false }
  const { mapping } = resolved[0]!.table
  const [queued] = request.action === 'retry' ? mapping.statusValues.queued : []
  const statusValue = queued?.value ?? requireStatusValue(mapping, 'resume')
  const reopened = !isLive(run.status)
  if (request.dryRun) return { targets: resolved.length, reopened }
  let targets = 0
  for (const one of resolved) if (await requeue(context, one, request, statusValue)) targets++
  return { targets, reopened: reopened && targets > 0 }
}

async function requeue(
  context: AdoptedContext,
  resolved: ResolvedRow,
  { action, actor, because }: RowRequest,
  value: string,
): Promise<boolean> {
  const { mapping } = resolved.table
  const isRun = mapping.kind === 'runs'
  const { status } = resolved.target
  return applyOperation(context, resolved, {
    action,
    actor,
    because,
    evidence: null,
    target: isRun ? null : resolved.target.id,
    change: { status: value, finishedAt: null, error: null, ...NO_WORKER },
    before: { targets: { [status]: 1 } },
    after: { targets: { planned: 1 } },
    reopens: true,
  })
}

/** Returns the matching rows. A row that is a run counts as its one target, if it has ended without success. */
async function selectRows(
  { rows }: AdoptedContext,
  run: Run,
  request: RowRequest,
): Promise<ResolvedRow[]> {
  const { statuses, targets, groups, attemptsMax, reopen } = request
  const table = (await rows.tables.find(run.traits.origin!.table))!
  if (table.mapping.kind === 'runs') {
    const resolved = await rows.resolveId(run.id)
    const hasEnded = resolved && !isLive(resolved.run.status) && resolved.run.status !== 'succeeded'
    const isSelected = targets?.includes(resolved?.target.id ?? '') ?? true
    return hasEnded && isSelected && (reopen || statuses.includes(resolved.target.status))
      ? [resolved]
      : []
  }
  const found: ResolvedRow[] = []
  if (targets) {
    for (const id of targets) {
      const resolved = await rows.resolveId(id)
      if (resolved?.target.run === run.id) found.push(resolved)
    }
  } else {
    const statusValues = await statusValuesIn(table, statuses)
    if (statusValues.length > 0)
      found.push(...(await rows.resolve(table, await allRows(table, { statusValues }), run)))
  }
  return found.filter(
    ({ target }) =>
      statuses.includes(target.status) &&
      (!groups || groups.includes(target.group ?? '')) &&
      (attemptsMax === undefined || target.attempts <= attemptsMax),
  )
}

/** Restores the previous values exactly, if the row has not changed since it was planned. */
export async function revertRows(context: AdoptedContext, revert: RevertRequest): Promise<boolean> {
  const { rows } = context
  const run = await requireRun(context, revert.run)
  if (run.kind === 'crawl') {
    let count = 0
    for (const { id, status } of revert.targets) {
      const resolved = await rows.resolveId(id)
      if (resolved?.target.status === status && (await restore(context, resolved, revert, id)))
        count++
    }
    return count > 0
  }
  const resolved = await rows.resolveId(revert.run)
  return resolved?.run.status === revert.from && (await restore(context, resolved, revert, null))
}

async function restore(
  context: AdoptedContext,
  resolved: ResolvedRow,
  { undoes, actor, because, targets }: RevertRequest,
  target: TargetId | null,
): Promise<boolean> {
  const audit = await context.store.audit({
    run: resolved.run.id,
    ...(target !== null && { target }),
    newestFirst: true,
    limit: AUDIT_MAX,
  })
  const undone = audit.find(({ action }) => action === undoes)
  const snapshot = undone && snapshotIn(undone)
  if (!snapshot)
    throw new RefusedError(`The previous values of ${rowLabel(resolved)} are not known.`)
  if (!isUnchanged(undone, resolved.row)) return false
  return applyOperation(context, resolved, {
    action: 'revert',
    actor,
    because,
    evidence: null,
    target,
    change: { restore: snapshot },
    after: { undoes, targets: targets.length },
    reopens: true,
  })
}

/** Deletes a row that has ended and has not changed. */
export async function deleteRow(
  context: AdoptedContext,
  { run: id, actor, because }: AuditInfo & { readonly run: RunId },
): Promise<DeleteResult> {
  const run = await requireRun(context, id)
  throwIf(refuseDelete(run, false))
  const resolved = await context.rows.resolveId(id)
  const change = 'delete' as const
  const operation = { action: 'delete', actor, because, evidence: null, target: null, change }
  const isDone =
    resolved !== null &&
    resolved.run.status === run.status &&
    (await applyOperation(context, resolved, operation))
  if (!isDone) throw new UsageError(`Run ${runName(run)} changed meanwhile: nothing was deleted.`)
  return { targets: 1, items: 0 }
}

/** Parks targets of a table. Returns those that were open. */
export async function parkRows(
  context: AdoptedContext,
  targets: readonly TargetId[],
  { actor, because }: AuditInfo,
): Promise<ParkedTarget[]> {
  const done: ParkedTarget[] = []
  for (const id of targets) {
    const resolved = await context.rows.resolveId(id)
    if (!resolved) throw unknownTarget(id)
    const { mapping } = resolved.table
    if (mapping.kind === 'runs') {
      throw new RefusedError(
        `Target ${shortId(id)} is ${rowLabel(resolved)}, which is a run of its own: ${cancelHint(resolved.run)}.`,
      )
    }
    const from: TargetStatus = resolved.target.status
    if (from === 'done' || from === 'parked') continue
    const status = requireParkedValue(mapping)
    const change = changeFor(mapping, 'park', { status, because, now: resolved.now })
    const operation = { action: 'park', actor, because, evidence: null, target: id, change }
    if (await applyOperation(context, resolved, operation))
      done.push({ target: id, run: resolved.run.id, from })
  }
  return done
}

async function requireRun({ rows }: AdoptedContext, id: RunId): Promise<Run> {
  const run = await rows.run(id)
  if (!run) throw unknownRun(id)
  return run
}

function rowLabel({ table, row }: ResolvedRow): string {
  return describeOrigin({ table: table.mapping.name, key: row.key })
}
