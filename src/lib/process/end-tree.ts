import type { ProcessIdentity } from '../../core/model/worker.ts'
import type { Clock } from '../../core/host/clock.ts'
import { cgroupsOf, isCgroupPopulated, killCgroup, removeCgroups } from './cgroup.ts'
import { findTree, HAS_PROC, signalAll, signalGroup, type TreeRoots } from './process-tree.ts'

export type EndTreeOptions = {
  /** Time between SIGTERM and SIGKILL; 0: SIGKILL at once. */
  readonly killTimeoutMs: number
  readonly clock: Clock
  /** Fires to skip the rest of the kill timeout. */
  readonly force?: AbortSignal
  /** Called with processes that still exist some time after SIGKILL. */
  readonly onUnkillable?: (pids: readonly number[]) => void
}

const POLL_MIN_MS = 5
const POLL_MAX_MS = 100
const UNKILLABLE_AFTER_MS = 5_000

/**
 * Ends every process of a command and resolves when none is left: SIGTERM to its group, SIGKILL after the kill timeout,
 * then scans for processes that left the group, repeated because a dying process can still start another one. Returns how
 * many had to be killed.
 */
export async function endTree(roots: TreeRoots, options: EndTreeOptions): Promise<number> {
  try {
    return await terminateTree(roots, options)
  } finally {
    removeCgroups(roots)
  }
}

async function terminateTree(roots: TreeRoots, options: EndTreeOptions): Promise<number> {
  const { killTimeoutMs, clock, force } = options
  if (killTimeoutMs > 0 && force?.aborted !== true) {
    if (isEmpty(roots)) return 0
    sendSigterm(roots)
    const deadline = clock.now() + killTimeoutMs
    const isGone = await waitUntilEmpty(roots, deadline, clock, force)
    if (isGone) return 0
  }
  return killTree(roots, options)
}

function sendSigterm(roots: TreeRoots): void {
  if (roots.leader && signalGroup(roots.leader, 'SIGTERM')) return
  // The group is empty or unknown: signal the remaining processes one by one.
  signalAll(findTree(roots), 'SIGTERM')
}

async function killTree(
  roots: TreeRoots,
  { clock, onUnkillable }: EndTreeOptions,
): Promise<number> {
  const killed = new Set<number>()
  const startedAt = clock.now()
  let isReported = false
  for (let pause = POLL_MIN_MS; ; pause = Math.min(2 * pause, POLL_MAX_MS)) {
    if (roots.leader && !HAS_PROC) signalGroup(roots.leader, 'SIGKILL')
    const left = findTree(roots)
    for (const group of cgroupsOf(roots)) killCgroup(group)
    signalAll(left, 'SIGKILL')
    if (left.length === 0 && isEmpty(roots)) return killed.size
    for (const { pid } of left) killed.add(pid)
    if (!isReported && clock.now() - startedAt > UNKILLABLE_AFTER_MS) {
      isReported = true
      onUnkillable?.(left.map(({ pid }) => pid))
    }
    await clock.sleep(pause)
  }
}

/** Returns false if processes are left at the deadline, or if `force` fired. */
async function waitUntilEmpty(
  roots: TreeRoots,
  deadline: number,
  clock: Clock,
  force: AbortSignal | undefined,
): Promise<boolean> {
  for (let pause = POLL_MIN_MS; ; pause = Math.min(2 * pause, POLL_MAX_MS)) {
    if (isEmpty(roots)) return true
    const left = deadline - clock.now()
    if (left <= 0 || force?.aborted === true) return false
    await clock.sleep(Math.min(pause, left), force)
  }
}

function isEmpty(roots: TreeRoots): boolean {
  if (HAS_PROC) return findTree(roots).length === 0 && !cgroupsOf(roots).some(isCgroupPopulated)
  return !roots.leader || !signalGroup(roots.leader, 0)
}

/** How core ends what an earlier copy of a command has left. */
export const COMMAND_PROCESSES = {
  end: endTree,
  kill({ pid, startTicks }: ProcessIdentity): void {
    if (startTicks !== null) signalAll([{ pid, startTicks }], 'SIGKILL')
  },
}
