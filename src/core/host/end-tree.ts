import type { Clock } from './clock.ts'
import { cgroupsOf, isPopulated, killGroup, removeCgroups } from './cgroup.ts'
import { findTree, SEES_TREES, signalAll, signalGroup, type Roots } from './process-tree.ts'

export type EndTreeOptions = {
  /** Asked to end first, and killed after this time; 0: killed at once. */
  readonly killTimeoutMs: number
  readonly clock: Clock
  /** Fires when there is no more time to be polite. */
  readonly hurry?: AbortSignal
  /** Processes that are there even though they were killed, for longer than is usual. */
  readonly onStubborn?: (pids: readonly number[]) => void
}

const LOOK_FIRST_MS = 5
const LOOK_MAX_MS = 100
const STUBBORN_MS = 5_000

/**
 * Ends every process of a command and resolves when none is left: SIGTERM to its group, SIGKILL after the kill timeout,
 * then a sweep for those that left the group, again and again, since one that is about to die can still start another.
 * Answers how many had to be killed.
 */
export async function endTree(roots: Roots, options: EndTreeOptions): Promise<number> {
  try {
    return await end(roots, options)
  } finally {
    removeCgroups(roots)
  }
}

async function end(roots: Roots, options: EndTreeOptions): Promise<number> {
  const { killTimeoutMs, clock, hurry } = options
  if (killTimeoutMs > 0 && hurry?.aborted !== true) {
    if (isEmpty(roots)) return 0
    politely(roots)
    const deadline = clock.now() + killTimeoutMs
    const isGone = await emptied(roots, deadline, clock, hurry)
    if (isGone) return 0
  }
  return kill(roots, options)
}

function politely(roots: Roots): void {
  if (roots.leader && signalGroup(roots.leader, 'SIGTERM')) return
  // The group is empty, or was never known here: whoever is left is asked one by one.
  signalAll(findTree(roots), 'SIGTERM')
}

async function kill(roots: Roots, { clock, onStubborn }: EndTreeOptions): Promise<number> {
  const killed = new Set<number>()
  const startedAt = clock.now()
  let isSaid = false
  for (let pause = LOOK_FIRST_MS; ; pause = Math.min(2 * pause, LOOK_MAX_MS)) {
    if (roots.leader && !SEES_TREES) signalGroup(roots.leader, 'SIGKILL')
    const left = findTree(roots)
    for (const group of cgroupsOf(roots)) killGroup(group)
    signalAll(left, 'SIGKILL')
    if (left.length === 0 && isEmpty(roots)) return killed.size
    for (const { pid } of left) killed.add(pid)
    if (!isSaid && clock.now() - startedAt > STUBBORN_MS) {
      isSaid = true
      onStubborn?.(left.map(({ pid }) => pid))
    }
    await clock.sleep(pause)
  }
}

/** False: some are still there at the deadline, or there was a hurry. */
async function emptied(
  roots: Roots,
  deadline: number,
  clock: Clock,
  hurry: AbortSignal | undefined,
): Promise<boolean> {
  for (let pause = LOOK_FIRST_MS; ; pause = Math.min(2 * pause, LOOK_MAX_MS)) {
    if (isEmpty(roots)) return true
    const left = deadline - clock.now()
    if (left <= 0 || hurry?.aborted === true) return false
    await clock.sleep(Math.min(pause, left), hurry)
  }
}

function isEmpty(roots: Roots): boolean {
  if (SEES_TREES) return findTree(roots).length === 0 && !cgroupsOf(roots).some(isPopulated)
  return !roots.leader || !signalGroup(roots.leader, 0)
}
