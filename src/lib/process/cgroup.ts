import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

const PROCS_FILE = 'cgroup.procs'

/** A command's processes: those of one execution, or without it those of every execution of the source. */
export type TreeTag = { readonly processTag: string; readonly execution?: string | undefined }

/**
 * The start of the name of a command's cgroup. It derives from the source's cookie, so that a later start finds the group
 * of a copy whose watchdog was killed; names are public, so the process tag itself is not in it.
 */
function groupPrefix({ processTag, execution = '' }: TreeTag): string {
  const digest = createHash('sha256').update(processTag).digest('hex').slice(0, 16)
  return `unstuck-${digest}-${execution}`
}

/**
 * Calls `start` while this process is in a new cgroup below its own, so that what it starts is a member from its first
 * instruction. Returns false, without calling it, where cgroup v2 is not mounted or not writable.
 */
export function startInCgroup(tag: Required<TreeTag>, start: () => void): boolean {
  const own = ownCgroup()
  if (own === null) return false
  const group = join(own, groupPrefix(tag))
  try {
    // The way back must be open as well.
    accessSync(join(own, PROCS_FILE), constants.W_OK)
    mkdirSync(group)
    moveSelfTo(group)
  } catch {
    removeGroup(group)
    return false
  }
  try {
    start()
  } finally {
    ignoreErrors(() => moveSelfTo(own))
  }
  return true
}

/** Tests whether a process is in a cgroup of the command, or in one below it. Holds also for groups created elsewhere. */
export function isInCgroup(pid: number, tag: TreeTag, read: ReadFile): boolean {
  const text = read(`/proc/${pid}/cgroup`)
  return text?.includes('/unstuck-') === true && text.includes(`/${groupPrefix(tag)}`)
}

/** The command's groups below this process's own cgroup. */
export function cgroupsOf(tag: TreeTag): string[] {
  const own = ownCgroup()
  if (own === null) return []
  const prefix = groupPrefix(tag)
  return subgroups(own)
    .filter((name) => name.startsWith(prefix))
    .map((name) => join(own, name))
}

/** Tests whether a process is left in a group or below it: the kernel's own count, without a race. */
export function isCgroupPopulated(group: string): boolean {
  return /^populated 1$/m.test(tryRead(join(group, 'cgroup.events')) ?? '')
}

/** Kills every process of a group at once. Kernels before 5.14 cannot: there each is killed by its pid. */
export function killCgroup(group: string): void {
  ignoreErrors(() => write(join(group, 'cgroup.kill'), '1'))
}

/**
 * Removes the command's groups below this process's own cgroup, but none that a process is left in. Also removes empty
 * groups of other commands: those of a source that is never started again after a kill -9 would stay for good.
 */
export function removeCgroups(tag: TreeTag): void {
  for (const group of cgroupsOf(tag)) removeGroup(group)
  const own = ownCgroup()
  if (own === null) return
  for (const name of subgroups(own).filter((name) => GROUP_NAME.test(name))) {
    const group = join(own, name)
    if (isOldEnough(group) && !isCgroupPopulated(group)) removeGroup(group)
  }
}

/** The name of a group that Unstuck has created. */
const GROUP_NAME = /^unstuck-[0-9a-f]{16}-/
/** A younger group may be empty because its command is just being started. */
const MIN_AGE_MS = 60_000

function isOldEnough(group: string): boolean {
  const created = statSync(group, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
  return Date.now() - created > MIN_AGE_MS
}

function removeGroup(group: string): void {
  for (const name of subgroups(group)) removeGroup(join(group, name))
  ignoreErrors(() => rmdirSync(group))
}

/** The folder of this process's own cgroup; null where cgroup v2 is not mounted or shows another part of the tree. */
function ownCgroup(): string | null {
  const path = tryRead('/proc/self/cgroup')?.match(/^0::(\/.*)$/m)?.[1]
  const mount = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(
    tryRead('/proc/self/mountinfo') ?? '',
  )
  if (path === undefined || !mount) return null
  const [, root = '/', folder = ''] = mount
  if (root === '/') return join(folder, path)
  return path === root || path.startsWith(`${root}/`) ? join(folder, path.slice(root.length)) : null
}

function subgroups(group: string): string[] {
  try {
    const entries = readdirSync(group, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  } catch {
    return []
  }
}

/** Moves this process, with all its threads. */
function moveSelfTo(group: string): void {
  write(join(group, PROCS_FILE), '0')
}

/** Never creates the file: a folder that only looks like a cgroup is refused. */
function write(path: string, text: string): void {
  writeFileSync(path, text, { flag: 'r+' })
}

function ignoreErrors(act: () => void): void {
  try {
    act()
  } catch {
    // The file or the group is gone, or the kernel does not allow it: callers check for themselves.
  }
}

/** Returns null for a file that cannot be read: its process may have ended. */
export type ReadFile = (path: string) => string | null

export function tryRead(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
