import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProcessStat } from '../../src/core/host/identity.ts'
import type { RunId } from '../../src/core/model/id.ts'
import type { Target } from '../../src/core/model/target.ts'
import type { Worker } from '../../src/core/model/worker.ts'
import type { Store } from '../../src/core/store/store.ts'
import { takeSnapshot } from '../../src/features/chaos/demo/worker-pool.ts'
import type { Random } from '../../src/features/chaos/random.ts'
import { readRecovery } from '../../src/features/chaos/recovery-tracker.ts'
import { descendants } from '../../src/lib/process/process-tree.ts'
import { kill, waitFor, type ProcessTestContext } from '../processes/harness.ts'
import { visitsOf } from './storm-ledger.ts'
import { SOURCE } from './storm-supervisors.ts'

/** Whose process is killed. */
export const ROLES = ['command', 'watchdog', 'supervisor'] as const
export type Role = (typeof ROLES)[number]

/** Which processes of a worker are stopped beyond its lease. */
export const FROZEN = ['watchdog and command', 'watchdog'] as const
export type Frozen = (typeof FROZEN)[number]

/** A kill -9; times are from the kill, one for each target that was left. */
export type Kill = {
  readonly role: Role
  readonly claimableMs: readonly number[]
  readonly reclaimedMs: readonly number[]
}

/** A worker that was stopped until another had its target. */
export type Zombie = {
  readonly frozen: Frozen
  readonly silentMs: number
  /** Its late page was refused: counted by the run, or seen by the command. */
  readonly isRefused: boolean
  /** The visits of pages that it could save only late. */
  readonly lateVisits: readonly string[]
}

export type FaultContext = {
  readonly ctx: ProcessTestContext
  readonly store: Store
  readonly run: RunId
  readonly random: Random
  readonly log: (line: string) => void
}

type Processes = { readonly [role in Role]: number }
type BusyWorker = { readonly worker: Worker; readonly target: Target; readonly pids: Processes }

/** A worker that dies before its first page is started again with a delay, which is no recovery. */
const MIN_AGE_MS = 3_000
const POLL_MS = 10
/** Within this time a worker that goes on has a page. */
const HOLD_MS = 3_000
/** Ends a wait that would never end; what was not seen by then is a finding. */
const GIVE_UP_MS = 30_000

/** Kills a process of a worker that holds a target, and waits until its targets are claimed again. */
export async function killOne(context: FaultContext, role: Role): Promise<Kill> {
  const { store, random, log } = context
  const { chosen, others, at } = await waitFor('a worker with a target', async () => {
    const now = await store.now()
    const busy = await busyWorkers(context)
    const settled = busy.filter(({ worker }) => now - worker.startedAt > MIN_AGE_MS)
    const of = settled.length > 0 ? settled : busy
    return of.length > 0 ? { chosen: random.pick(of), others: busy, at: now } : null
  })
  kill(chosen.pids[role], 'SIGKILL')
  const hit = role === 'supervisor' ? others.filter((one) => isBeside(one, chosen)) : [chosen]
  const orphans = await orphansOf(store, hit)
  const recoveries = await Promise.all(orphans.map((one) => recoveryOf(store, one, at)))
  const found = recoveries.filter((one) => one !== null)
  const claimableMs = found.map((one) => one.claimableMs)
  const reclaimedMs = found.map((one) => one.reclaimedMs)
  const keys = orphans.map(({ key }) => key).join(', ')
  log(`kill -9 of a ${role} with ${keys}: claimable ${claimableMs}, claimed ${reclaimedMs} ms`)
  return { role, claimableMs, reclaimedMs }
}

/** The same supervisor has started both. */
function isBeside(one: BusyWorker, other: BusyWorker): boolean {
  return one.pids.supervisor === other.pids.supervisor
}

/** Returns what the workers held when they were killed; they may have taken another target since they were read. */
async function orphansOf(store: Store, hit: readonly BusyWorker[]): Promise<Target[]> {
  const orphans = new Map(hit.map(({ target }) => [target.id, target]))
  for (const { worker } of hit) {
    for (const { target } of await store.claimsOf(worker.id, null, 10)) {
      orphans.set(target.id, target)
    }
  }
  return [...orphans.values()]
}

async function recoveryOf(
  store: Store,
  orphan: Target,
  at: number,
): Promise<{ claimableMs: number; reclaimedMs: number } | null> {
  const giveUpAt = performance.now() + GIVE_UP_MS
  for (;;) {
    const found = await readRecovery(store, orphan, at)
    if (found) return found.recovery && found.recovery.reclaimedMs >= 0 ? found.recovery : null
    if (performance.now() > giveUpAt) return { claimableMs: GIVE_UP_MS, reclaimedMs: GIVE_UP_MS }
    await sleep(POLL_MS)
  }
}

/** Stops a worker until another has its target, lets it save its page, and sees whether that is refused. */
export async function raiseZombie(context: FaultContext, frozen: Frozen): Promise<Zombie> {
  const { ctx, store, log } = context
  const { target, pids } = await waitFor('a worker in a page', () => holdPage(context))
  const { command, watchdog } = pids
  const before = visitsOf(ctx).length
  const refusedBefore = await countRefusals(context, command)
  try {
    if (frozen !== 'watchdog') kill(command, 'SIGSTOP')
    await ctx.freeze({ pid: watchdog })
    const frozenAt = performance.now()
    await waitFor(`another worker to claim ${target.key}`, async () => {
      const now = await store.target(target.id)
      return now && now.epoch > target.epoch && now.worker !== target.worker
    })
    const silentMs = performance.now() - frozenAt
    // First only the command: its watchdog would tell it that the target is lost.
    releasePage(context, command)
    kill(command, 'SIGCONT')
    const isRefused = await until(
      async () => (await countRefusals(context, command)) > refusedBefore,
    )
    const own = visitsOf(ctx).filter(({ pid, key }) => pid === command && key === target.key)
    const inProgress = visitsOf(ctx)
      .slice(0, before)
      .findLast(({ pid }) => pid === command)!
    const lateVisits = own.slice(own.findIndex(({ visit }) => visit === inProgress.visit))
    const end = isRefused ? 'its late page was refused' : 'NO late page was refused'
    log(`SIGSTOP of a ${frozen} for ${Math.round(silentMs)} ms, then SIGCONT: ${end}`)
    return { frozen, silentMs, isRefused, lateVisits: lateVisits.map(({ visit }) => visit) }
  } finally {
    releasePage(context, command)
    for (const pid of [command, watchdog]) kill(pid, 'SIGCONT')
  }
}

/** Returns a worker whose command has read a page and does not save it before `releasePage`; null if there is none. */
async function holdPage(context: FaultContext): Promise<BusyWorker | null> {
  const { ctx, random } = context
  const busy = await busyWorkers(context)
  if (busy.length === 0) return null
  const { worker, pids } = random.pick(busy)
  const held = (): number => ctx.marks('holding').filter(({ pid }) => pid === pids.command).length
  const heldBefore = held()
  writeFileSync(holdFile(ctx, pids.command), '')
  const isHolding = await until(async () => held() > heldBefore, HOLD_MS)
  const holder = (await busyWorkers(context)).find((one) => one.worker.id === worker.id)
  if (isHolding && holder) return holder
  releasePage(context, pids.command)
  return null
}

function releasePage({ ctx }: FaultContext, command: number): void {
  rmSync(holdFile(ctx, command), { force: true })
}

function holdFile({ folder }: ProcessTestContext, command: number): string {
  return join(folder, `hold-${command}`)
}

/** SQLite: the fence counts them. PostgreSQL: the statement of the command's own transaction raises an error. */
async function countRefusals({ ctx, store, run }: FaultContext, command: number): Promise<number> {
  const seen = ctx.marks('refused').filter(({ pid }) => pid === command).length
  return seen + ((await store.run(run))?.counts.refused ?? 0)
}

/** Returns true once it holds, false if it does not in time. */
async function until(holds: () => Promise<boolean>, timeoutMs = GIVE_UP_MS): Promise<boolean> {
  const giveUpAt = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > giveUpAt) return false
    await sleep(POLL_MS)
  }
  return true
}

/** Returns the live workers that hold a target, with their processes. */
async function busyWorkers({ store, run }: FaultContext): Promise<BusyWorker[]> {
  const { workers, held } = await takeSnapshot(store, run, SOURCE)
  return workers.flatMap((worker) => {
    const target = held.get(worker.id)
    const pids = target && processesOf(worker.process.pid)
    return target && pids ? [{ worker, target, pids }] : []
  })
}

function processesOf(watchdog: number): Processes | null {
  const supervisor = readProcessStat(watchdog)?.parent
  const command = descendants(watchdog).find(({ pid }) => pid !== watchdog)?.pid
  return supervisor && command ? { command, watchdog, supervisor } : null
}
