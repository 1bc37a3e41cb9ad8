import { sayEnding } from '../../../core/decide/cancelling.ts'
import { isAsLeft } from '../../../core/decide/revert.ts'
import { NotFound, Refused } from '../../../core/model/errors.ts'
import { shortId, type RunId, type TargetId } from '../../../core/model/id.ts'
import { isLive, sayRow, type AdoptedRef, type Run } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { Deed, Replan, Replanned, Revert, SetAside } from '../../../core/store/store.ts'
import { carryOut, type Desk } from './intents.ts'
import type { Mapping } from '../mapping.ts'
import type { Seen } from './row-run.ts'
import { allRows, wordsMeaning } from './reading.ts'
import { stampIn } from './row-hash.ts'
import { changeFor } from './verdicts.ts'
import { notMapped, wordFor } from './status-mapping.ts'

/** What people ask for, done to rows of their own tables. */

const TRAIL_MAX = 10_000

/** Puts a row, or rows of a table of targets, back in line. */
export async function replanRows(desk: Desk, request: Replan): Promise<Replanned> {
  const run = await theRun(desk, request.run)
  const seen = await chosen(desk, run, request)
  if (seen.length === 0) return { targets: 0, reopened: false }
  const { mapping } = seen[0]!.table
  const word = wordOrRefuse(mapping, 'resume')
  const reopened = !isLive(run.status)
  if (request.dryRun) return { targets: seen.length, reopened }
  let targets = 0
  for (const one of seen) if (await putBack(desk, one, request, word)) targets++
  return { targets, reopened: reopened && targets > 0 }
}

async function putBack(
  desk: Desk,
  seen: Seen,
  { action, actor, because }: Replan,
  word: string,
): Promise<boolean> {
  const { mapping } = seen.table
  const isRun = mapping.kind === 'runs'
  const { status } = seen.target
  return carryOut(desk, seen, {
    action,
    actor,
    because,
    evidence: null,
    target: isRun ? null : seen.target.id,
    change: { word, finishedAt: null, error: null, owner: null, heartbeatAt: null },
    before: { targets: { [status]: 1 } },
    after: { targets: { planned: 1 } },
    reopens: true,
  })
}

/** The rows that fit. A row that is a run counts as its one target, if it has ended and did not succeed. */
async function chosen({ rows }: Desk, run: Run, request: Replan): Promise<Seen[]> {
  const { statuses, targets, groups, attemptsMax, reopen } = request
  const { kind, table } = await tableOf(rows, run.adopted!)
  if (kind === 'runs') {
    const seen = await rows.seeId(run.id)
    const isOver = seen && !isLive(seen.run.status) && seen.run.status !== 'succeeded'
    const isMeant = targets?.includes(seen?.target.id ?? '') ?? true
    return isOver && isMeant && (reopen || statuses.includes(seen.target.status)) ? [seen] : []
  }
  const found: Seen[] = []
  if (targets) {
    for (const id of targets) {
      const seen = await rows.seeId(id)
      if (seen?.target.run === run.id) found.push(seen)
    }
  } else {
    const words = await wordsMeaning(table, statuses)
    if (words.length > 0)
      found.push(...(await rows.see(table, await allRows(table, { words }), run)))
  }
  return found.filter(
    ({ target }) =>
      statuses.includes(target.status) &&
      (!groups || groups.includes(target.group ?? '')) &&
      (attemptsMax === undefined || target.attempts <= attemptsMax),
  )
}

/** Exactly what stood there before is there again, if the row still is as it was planned. */
export async function revertRows(desk: Desk, revert: Revert): Promise<boolean> {
  const { rows } = desk
  const run = await theRun(desk, revert.run)
  const { kind } = await tableOf(rows, run.adopted!)
  if (kind === 'targets') {
    let count = 0
    for (const { id, status } of revert.targets) {
      const seen = await rows.seeId(id)
      if (seen?.target.status === status && (await restore(desk, seen, revert, id))) count++
    }
    return count > 0
  }
  const seen = await rows.seeId(revert.run)
  return seen?.run.status === revert.from && (await restore(desk, seen, revert, null))
}

async function restore(
  desk: Desk,
  seen: Seen,
  { undoes, actor, because, targets }: Revert,
  target: TargetId | null,
): Promise<boolean> {
  const trail = await desk.store.audit({
    run: seen.run.id,
    ...(target !== null && { target }),
    newestFirst: true,
    limit: TRAIL_MAX,
  })
  const undone = trail.find(({ action }) => action === undoes)
  const stamp = undone && stampIn(undone)
  if (!stamp) throw new Refused(`What stood in ${nameOf(seen)} before is not known.`)
  if (!isAsLeft(undone, seen.row)) return false
  return carryOut(desk, seen, {
    action: 'revert',
    actor,
    because,
    evidence: null,
    target,
    change: { restore: stamp },
    after: { undoes, targets: targets.length },
    reopens: true,
  })
}

/** Sets targets of a table aside. Answers those that were open. */
export async function setRowsAside(
  desk: Desk,
  targets: readonly TargetId[],
  { actor, because }: Deed,
): Promise<SetAside[]> {
  const done: SetAside[] = []
  for (const id of targets) {
    const seen = await desk.rows.seeId(id)
    if (!seen)
      throw new NotFound(`target ${id}`, '`unstuck show RUN` lists those that need a person.')
    const { mapping } = seen.table
    if (mapping.kind === 'runs') {
      throw new Refused(
        `Target ${shortId(id)} is ${nameOf(seen)}, which is a run of its own: ${sayEnding(seen.run)}.`,
      )
    }
    const from: TargetStatus = seen.target.status
    if (from === 'done' || from === 'parked') continue
    const word = mapping.words.parked[0] ?? mapping.words.stuck[0]
    if (word === undefined) throw new Refused(`${notMapped(mapping, 'park', ['parked', 'stuck'])}.`)
    const change = changeFor(mapping, 'park', { word, because, now: seen.now })
    const deed = { action: 'park', actor, because, evidence: null, target: id, change }
    if (await carryOut(desk, seen, deed)) done.push({ target: id, run: seen.run.id, from })
  }
  return done
}

async function theRun({ rows }: Desk, id: RunId): Promise<Run> {
  const run = await rows.run(id)
  if (!run) throw new NotFound(`run ${id}`, '`unstuck runs` lists them.')
  return run
}

async function tableOf(rows: Desk['rows'], { table: name }: AdoptedRef) {
  const table = (await rows.tables.usable()).find(({ mapping }) => mapping.name === name)!
  return { table, kind: table.mapping.kind }
}

function wordOrRefuse(mapping: Mapping, action: 'resume'): string {
  const found = wordFor(mapping, action)
  if ('missing' in found) throw new Refused(`${notMapped(mapping, action, found.missing)}.`)
  return found.word
}

function nameOf({ table, row }: Seen): string {
  return sayRow({ table: table.mapping.name, key: row.key })
}
