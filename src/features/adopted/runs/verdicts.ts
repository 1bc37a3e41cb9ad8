import { readSign, STEADY } from '../../../core/decide/liveness.ts'
import { Refused } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { isLive, type RunStatus } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import { TARGET_AFTER, type Action } from '../../../core/model/verdict.ts'
import type { Judgement, RunMove } from '../../../core/store/store.ts'
import { storedText } from '../../../core/store/stored-text.ts'
import { carryOut, carryOutAll, type Desk, type Task } from './intents.ts'
import type { Mapping } from '../mapping.ts'
import { isPutBack } from './reading.ts'
import type { Seen } from './row-run.ts'
import type { Change } from '../table/table.ts'
import { notMapped, wordFor } from './status-mapping.ts'

const CANCEL_TRIES = 5
/** So many are done together: each takes a few transactions less, and whoever is killed leaves no more to look into. */
const TOGETHER = 100

/** Applies each to the row as it was judged. Answers which were applied by this call. */
export async function applyToRows(
  desk: Desk,
  judgements: readonly Judgement[],
  actor: string,
): Promise<boolean[]> {
  const applied: boolean[] = []
  for (let at = 0; at < judgements.length; at += TOGETHER)
    applied.push(...(await applyTogether(desk, judgements.slice(at, at + TOGETHER), actor)))
  return applied
}

async function applyTogether(
  desk: Desk,
  judgements: readonly Judgement[],
  actor: string,
): Promise<boolean[]> {
  const tasks: (Task | null)[] = []
  for (const judgement of judgements) tasks.push(await taskOf(desk, judgement, actor))
  const done = (
    await carryOutAll(
      desk,
      tasks.filter((task) => task !== null),
    )
  ).values()
  return tasks.map((task) => task !== null && done.next().value!)
}

/** Null: there is nothing to do, it is no longer what was judged, or there is no word for it. */
async function taskOf(
  { rows }: Desk,
  { held: { run, target, row }, decision, evidence }: Judgement,
  actor: string,
): Promise<Task | null> {
  const { action, because } = decision
  if (TARGET_AFTER[action] === undefined || !row) return null
  const whole = run.kind === 'crawl' ? run : undefined
  const seen = await rows.seeStill(row, evidence.seal, whole)
  if (!seen) return null
  const { mapping } = seen.table
  const found = wordFor(mapping, action)
  if ('missing' in found) {
    rows.sayOnce(notMapped(mapping, action, found.missing))
    return null
  }
  const deed = {
    actor,
    action,
    because,
    evidence: withoutSeal(evidence),
    target: target.id,
    change: changeFor(mapping, action, { word: found.word, because, now: seen.now }),
    before: { worker: target.worker, page: target.page },
    isAutomatic: true,
  }
  return { seen: { ...seen, run, target }, deed }
}

/** The trail has what stood there. */
function withoutSeal({ seal: _seal, ...evidence }: Judgement['evidence']): unknown {
  return evidence
}

/** Moves a row as it was judged as a whole, or as a person asked. */
export async function moveRow(desk: Desk, move: RunMove): Promise<boolean> {
  const { rows } = desk
  const { run: id, actor, action, because, evidence, to, only } = move
  const isJudged = only.row !== undefined
  const seen = await (only.row ? rows.seeStill(only.row, only.row.seal) : rows.seeId(id))
  if (!seen) return isJudged ? false : refuseWhole(desk, move)
  if (!isLive(seen.run.status) || (!isJudged && !isStill(seen, only))) return false
  const { mapping } = seen.table
  const found = wordFor(mapping, ACTION_TO[to])
  const isPersons = to === 'cancelled'
  if ('missing' in found) {
    if (isPersons) throw new Refused(`${notMapped(mapping, 'cancel', found.missing)}.`)
    rows.sayOnce(notMapped(mapping, ACTION_TO[to], found.missing))
    return false
  }
  const change = changeFor(mapping, ACTION_TO[to], { word: found.word, because, now: seen.now })
  const deed = { actor, action, because, evidence, change, target: null, isAutomatic: !isPersons }
  return carryOut(desk, seen, deed)
}

/** A person's word counts whatever the row is by now, so it is said again when somebody was faster. */
export async function cancelRow(desk: Desk, move: RunMove): Promise<boolean> {
  for (let tries = 1; tries <= CANCEL_TRIES; tries++) if (await moveRow(desk, move)) return true
  return false
}

/** As verdicts call it. */
const ACTION_TO = {
  interrupted: 'resume',
  cancelled: 'cancel',
  abandoned: 'abandon',
  failed: 'fail',
} as const satisfies Partial<Record<RunStatus, Action | 'cancel'>>

/** Nothing ends a table of targets as a whole. */
async function refuseWhole({ rows }: Desk, { run: id, to }: RunMove): Promise<boolean> {
  const run = await rows.run(id)
  if (!run || to !== 'cancelled') return false
  throw new Refused(
    `Run ${shortId(id)} is the whole table ${run.source}: it is not ended as one. ` +
      'Set single targets aside with `unstuck park`.',
  )
}

/** Whether that is still so which had to be. Who is lost holds nothing. */
function isStill({ run, witnessed }: Seen, only: RunMove['only']): boolean {
  const { status, lastActivityAt, resumes, unheld } = only
  const isHeld =
    witnessed !== null && !['gone', 'silent'].includes(readSign(witnessed.evidence, STEADY).sign)
  return (
    (status === undefined || status === run.status) &&
    (lastActivityAt === undefined || lastActivityAt === run.lastActivityAt) &&
    (resumes === undefined || resumes === run.resumes) &&
    !(unheld && isHeld)
  )
}

/** What is written with a word: what is back in line has no owner, what has ended says when and why. */
export function changeFor(
  mapping: Mapping,
  action: Action | 'cancel',
  { word, because, now }: { word: string; because: string; now: Millis },
): Change {
  if (isPutBack(mapping, word)) return { word, owner: null, heartbeatAt: null }
  const error = storedText(because)
  return action === 'hold' ? { word, error } : { word, finishedAt: now, error }
}
