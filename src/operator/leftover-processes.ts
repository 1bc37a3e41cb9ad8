import { REAL_CLOCK } from '../core/host/clock.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import {
  assessSourceLock,
  canBeTaken,
  inspectSourceLock,
  type SourceLockState,
} from '../core/recovery/source-lock.ts'
import type { Store } from '../core/store/store.ts'
import { COMMAND_STORE } from '../features/commands/store/store.ts'
import { removeCgroups } from '../lib/process/cgroup.ts'
import { COMMAND_PROCESSES } from '../lib/process/end-tree.ts'
import { describeProcess, nameProcess, type ProcessInfo } from '../lib/process/process-info.ts'
import { findTree, findTrees, isAlive, signalAll } from '../lib/process/process-tree.ts'

/** Processes of a wrapped command on this machine that outlived Unstuck and its watchdog. */
export type Leftover = { readonly lock: SourceLock; readonly processes: readonly ProcessInfo[] }

/**
 * Finds what is left on this machine of commands whose lock has a dead holder. A lock that was released has none: its
 * holder ended the command first. So /proc is searched only after a kill.
 */
export async function findLeftovers(
  store: Store,
  states: readonly SourceLockState[],
): Promise<Leftover[]> {
  const locks = states.filter(isLeftBehind).map(({ lock }) => lock)
  if (locks.length === 0) return []
  const trees = findTrees(locks)
  const found = locks
    .map((lock, n) => ({ lock, processes: trees[n]!.map(describeProcess) }))
    .filter(({ processes }) => processes.length > 0)
  if (found.length === 0) return []
  // A new copy may have taken a lock over before the search, and carries the same tag.
  const holders = new Map((await store.sourceLocks()).map(({ source, worker }) => [source, worker]))
  return found.filter(({ lock: { source, worker } }) => holders.get(source) === worker)
}

/** A holder that is not known has released the lock since it was read; processes of one elsewhere are not here. */
function isLeftBehind(state: SourceLockState): boolean {
  return state.holder !== null && state.holder.isLocal && canBeTaken(state)
}

/** Returns the same for a preview: only these sources, and only what has run for longer. */
export async function listLeftovers(
  store: Store,
  {
    sources = [],
    groups = [],
    olderThanMs = 0,
  }: {
    readonly sources?: readonly string[]
    readonly groups?: readonly string[]
    readonly olderThanMs?: number
  },
): Promise<Leftover[]> {
  // A group is a part of a crawl.
  if (groups.length > 0) return []
  const locks = (await store.sourceLocks()).filter(({ worker }) => worker !== null)
  if (locks.length === 0) return []
  const observations = await store.observations()
  const states = locks.map((lock) => assessSourceLock(lock, observations))
  return (await findLeftovers(store, states))
    .filter(({ lock }) => sources.length === 0 || sources.includes(lock.source))
    .filter(({ processes }) => processes.some(({ ageMs }) => ageMs >= olderThanMs))
}

const GRACE_MS = 5_000
const POLL_MS = 50
const LIMIT_MS = 10_000
const RUNS_SEARCHED = 20
const EXECUTIONS_SEARCHED = 20

/**
 * Ends what a preview showed and what these processes have started since: SIGTERM, then SIGKILL. A source that was started
 * again meanwhile is left alone. Returns the processes that ended.
 */
export async function endLeftovers(
  store: Store,
  leftovers: readonly Leftover[],
  actor: string,
): Promise<Leftover[]> {
  return Promise.all(leftovers.map((leftover) => endLeftover(store, leftover, actor)))
}

async function endLeftover(store: Store, { lock, processes }: Leftover, actor: string) {
  const startedAt = REAL_CLOCK.now()
  let isAsked = false
  for (;;) {
    // Searched before the lock is read: what was found then is no process of a copy that starts after it.
    const found = findTree(lock)
    const [current] = await store.sourceLocks(lock.source)
    if (current?.worker !== lock.worker) break
    const state = await inspectSourceLock(store, current)
    const late = REAL_CLOCK.now() - startedAt
    if (found.length === 0 || !canBeTaken(state) || late > LIMIT_MS) break
    if (state.holder?.isLocal) COMMAND_PROCESSES.kill(state.holder.worker.process)
    if (late > GRACE_MS) signalAll(found, 'SIGKILL')
    else if (!isAsked) signalAll(found, 'SIGTERM')
    isAsked = true
    await REAL_CLOCK.sleep(POLL_MS)
  }
  removeCgroups(lock)
  const ended = { lock, processes: processes.filter((one) => !isAlive(one)) }
  if (isAsked && ended.processes.length > 0) await recordEnd(store, ended, actor)
  return ended
}

async function recordEnd(
  store: Store,
  { lock: { source, worker }, processes }: Leftover,
  actor: string,
): Promise<void> {
  const commands = await store.extend(COMMAND_STORE)
  const { items } = await store.runs({ source, limit: RUNS_SEARCHED })
  // A run that was queued since the kill had no part in it.
  const runs = items.map(({ id }) => id)
  const executions = await commands.executions(runs, EXECUTIONS_SEARCHED)
  const run = executions.find((execution) => execution.worker === worker)?.run ?? runs[0]
  if (run === undefined) return
  const count = processes.length === 1 ? '1 process' : `${processes.length} processes`
  const because = `ended ${count} that an earlier copy had left: ${processes.map(nameProcess).join(', ')}`
  await commands.recordEndedProcesses({ run, source, actor, because })
}
