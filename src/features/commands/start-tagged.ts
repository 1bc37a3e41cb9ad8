import { startInCgroup, type TreeTag } from '../../core/host/cgroup.ts'
import { startWithLimitTag } from '../../core/host/limit-tag.ts'
import { HAS_PROC } from '../../core/host/process-tree.ts'

/**
 * How the processes of a command are found, whatever they do. `cgroup`: the kernel keeps the list of them. `limit`: by a
 * mark that they inherit and that is lost only when a process sets its own limits. `environment`: by their environment,
 * session and parents; a process that drops all three at once is not found. `group`: there is no /proc, so only the
 * command's process group is known.
 */
export type Tracking = 'cgroup' | 'limit' | 'environment' | 'group'

/** What cannot be found, in a sentence; null where nothing gets away by accident. */
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

/** Starts a process under the strongest mark this system allows. Whatever `start` throws is thrown. */
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
