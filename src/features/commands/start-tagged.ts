import { startInCgroup, type TreeTag } from '../../lib/process/cgroup.ts'
import { startWithLimitTag } from '../../lib/process/limit-tag.ts'
import { HAS_PROC } from '../../lib/process/process-tree.ts'

/**
 * How the processes of a command are found. `cgroup`: the kernel lists them. `limit`: by a resource limit that they inherit
 * and lose only by setting their own. `environment`: by their environment,
 * session and parents; a process that drops all three at once is not found. `group`: there is no /proc, so only the
 * command's process group is known.
 */
export type Tracking = 'cgroup' | 'limit' | 'environment' | 'group'

/** Returns which processes cannot be found; null if none can escape by accident. */
export function trackingGap(tracking: Tracking): string | null {
  switch (tracking) {
    case 'cgroup':
    case 'limit':
      return null
    case 'environment':
      return 'a process that clears its environment and opens a session of its own cannot be found here: there is neither a writable cgroup v2 nor prlimit'
    case 'group':
      return 'a process that leaves the process group of its command cannot be found here: there is no /proc'
  }
}

/** Starts a process with the strongest tag that this system allows. Throws what `start` throws. */
export function startTagged<T>(
  tag: Required<TreeTag>,
  start: () => T,
): { readonly started: T; readonly tracking: Tracking } {
  let result: { started: T } | null = null
  const once = (): void => {
    result = { started: start() }
  }
  if (startInCgroup(tag, once)) return { ...result!, tracking: 'cgroup' }
  if (startWithLimitTag(tag, once)) return { ...result!, tracking: 'limit' }
  return { started: start(), tracking: HAS_PROC ? 'environment' : 'group' }
}
