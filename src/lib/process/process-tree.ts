import { readdirSync } from 'node:fs'
import process from 'node:process'
import { readProcessStat, type ProcessStat } from '../../core/host/identity.ts'
import { isInCgroup, tryRead, type ReadFile, type TreeTag } from './cgroup.ts'
import { hasLimitTag } from './limit-tag.ts'

/** A process. The start time distinguishes it from a later one with the same pid. */
export type ProcessRef = { readonly pid: number; readonly startTicks: number }

/**
 * Environment variable that tags the processes of a command; children inherit it. The name belongs to the source, so that a
 * command inside a command carries both; the value is the execution.
 */
export function tagVariable(processTag: string): string {
  return `UNSTUCK_TREE_${processTag}`
}

/** Where a command's processes are found. */
export type TreeRoots = TreeTag & {
  /** The command itself, if known: it leads its own session. */
  readonly leader?: ProcessRef | undefined
  /** Members found by an earlier scan. Browsers overwrite their environment and leave the session, but not both between two scans. */
  readonly known?: readonly ProcessRef[]
  /** A process that is never a member, whatever it carries. */
  readonly exclude?: number | undefined
}

/**
 * Every living process of a command: those in its cgroup, those with one of its marks, those of its session, those seen before; and then
 * their descendants, and sessions that a member has opened. Never this process or its ancestors, whatever their environment
 * contains: an operator may have copied the tag.
 */
export function findTree(roots: TreeRoots): ProcessRef[] {
  return findTrees([roots])[0]!
}

/** Returns the same for each of several commands, from one scan of all processes. */
export function findTrees(commands: readonly TreeRoots[]): ProcessRef[][] {
  const all = listProcesses()
  const own = ancestors(process.pid, all)
  const read = readOnce()
  return commands.map((roots) => treeOf(roots, all, own, read))
}

/** `own`: this process and its ancestors. */
function treeOf(
  roots: TreeRoots,
  all: ReadonlyMap<number, ProcessStat>,
  own: readonly number[],
  read: ReadFile,
): ProcessRef[] {
  const known = new Map((roots.known ?? []).map(({ pid, startTicks }) => [pid, startTicks]))
  const members = new Set<number>()
  const sessions = new Set<number>()
  if (roots.leader && !isPidReused(roots.leader)) sessions.add(roots.leader.pid)
  const excluded = new Set([...own, roots.exclude])
  // Sessions that the command cannot have opened; the kernel reports 0 for one of another pid namespace.
  const foreign = new Set([0, ...own.map((pid) => all.get(pid)!.session)])
  for (const [pid, stat] of all) {
    if (excluded.has(pid)) continue
    if (known.get(pid) === stat.startTicks || isTagged(pid, stat, roots, read)) members.add(pid)
  }
  for (let before = -1; before !== members.size;) {
    before = members.size
    for (const pid of members) {
      const { session } = all.get(pid)!
      // A session whose leader has ended was opened by a member too, or its processes would not carry the tag.
      const isLeaderless = !all.has(session) && !foreign.has(session)
      if (members.has(session) || isLeaderless) sessions.add(session)
    }
    for (const [pid, { session, parent }] of all) {
      if ((sessions.has(session) || members.has(parent)) && !excluded.has(pid)) members.add(pid)
    }
  }
  return [...members].map((pid) => ({ pid, startTicks: all.get(pid)!.startTicks }))
}

/** Returns a process and its ancestors. */
function ancestors(pid: number, all: ReadonlyMap<number, ProcessStat>): number[] {
  const stat = all.get(pid)
  return stat ? [pid, ...ancestors(stat.parent, all)] : []
}

/** Returns the live descendants of a process. Cheap enough for every second, but misses orphaned ones. */
export function descendants(pid: number): ProcessRef[] {
  const stat = readProcessStat(pid)
  if (!stat || stat.isDead) return []
  const found = childrenOf(pid).flatMap((child) => descendants(child))
  return [{ pid, startTicks: stat.startTicks }, ...found]
}

/** Each thread has its own list of children. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
      const text = tryRead(`/proc/${pid}/task/${thread}/children`)?.trim() ?? ''
      return text === '' ? [] : text.split(' ').map(Number)
    })
  } catch {
    return []
  }
}

/** Returns false if the process has ended, also if its pid belongs to another process by now. */
export function isAlive({ pid, startTicks }: ProcessRef): boolean {
  const stat = readProcessStat(pid)
  return stat !== null && !stat.isDead && stat.startTicks === startTicks
}

/** Signals the processes that still exist under their pid. */
export function signalAll(members: readonly ProcessRef[], signal: NodeJS.Signals): void {
  for (const member of members) if (isAlive(member)) trySignal(member.pid, signal)
}

/** Signals the process group that the command leads. Returns false if the group is empty. */
export function signalGroup(leader: ProcessRef, signal: NodeJS.Signals | 0): boolean {
  return !isPidReused(leader) && trySignal(-leader.pid, signal)
}

/** Returns true if the pid was given to another process. The kernel does so only when the old group and session are empty. */
function isPidReused({ pid, startTicks }: ProcessRef): boolean {
  const stat = readProcessStat(pid)
  return stat !== null && stat.startTicks !== startTicks
}

/** Returns the memory of these processes in bytes, shared memory counted once. Null if the system does not report it. */
export function memoryBytesOf(members: readonly ProcessRef[]): number | null {
  const parts = members.map(({ pid }) => memoryKilobytes(pid))
  return parts.every((part) => part === null)
    ? null
    : parts.reduce<number>((sum, part) => sum + (part ?? 0), 0) * 1024
}

/** Returns how many processes the kernel has killed for lack of memory, in this cgroup and on the machine. */
export function countOomKills(): number {
  const own = tryRead('/proc/self/cgroup')?.match(/^0::(.*)$/m)?.[1]
  const group = own === undefined ? null : tryRead(`/sys/fs/cgroup${own}/memory.events`)
  return Math.max(parseOomKills(group), parseOomKills(tryRead('/proc/vmstat')))
}

/** Without /proc only the command's own process group can be ended, not processes that left it. */
export const HAS_PROC = tryRead('/proc/self/stat') !== null

function listProcesses(): Map<number, ProcessStat> {
  const all = new Map<number, ProcessStat>()
  for (const name of HAS_PROC ? readdirSync('/proc') : []) {
    const stat = /^\d+$/.test(name) ? readProcessStat(Number(name)) : null
    if (stat && !stat.isDead) all.set(Number(name), stat)
  }
  return all
}

function isTagged(
  pid: number,
  { startTicks }: ProcessStat,
  roots: TreeRoots,
  read: ReadFile,
): boolean {
  if (isInCgroup(pid, roots, read)) return true
  // A process older than the command cannot have inherited anything from it.
  if (roots.leader && startTicks < roots.leader.startTicks) return false
  return hasTagVariable(pid, roots, read) || hasLimitTag(pid, roots, read)
}

function hasTagVariable(pid: number, { processTag, execution }: TreeTag, read: ReadFile): boolean {
  const entry = `\0${tagVariable(processTag)}=${execution === undefined ? '' : `${execution}\0`}`
  const environ = read(`/proc/${pid}/environ`)
  return environ !== null && `\0${environ}`.includes(entry)
}

function memoryKilobytes(pid: number): number | null {
  // Proportional share of shared memory. Older kernels have no sum: then the resident set.
  const pss = tryRead(`/proc/${pid}/smaps_rollup`)?.match(/^Pss:\s+(\d+)/m)?.[1]
  const found = pss ?? tryRead(`/proc/${pid}/status`)?.match(/^VmRSS:\s+(\d+)/m)?.[1]
  return found === undefined ? null : Number(found)
}

function parseOomKills(text: string | null): number {
  return Number(text?.match(/^oom_kill (\d+)/m)?.[1] ?? 0)
}

function trySignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    // EPERM: the process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Keeps what it has read. */
function readOnce(): ReadFile {
  const texts = new Map<string, string | null>()
  return (path) => {
    if (!texts.has(path)) texts.set(path, tryRead(path))
    return texts.get(path)!
  }
}
