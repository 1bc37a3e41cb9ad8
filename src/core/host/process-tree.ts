import { readdirSync, readFileSync } from 'node:fs'
import process from 'node:process'
import { readProcessStat, type ProcessStat } from './identity.ts'
import { isInCgroup, type TreeTag } from './cgroup.ts'
import { hasLimitTag } from './limit-tag.ts'

/** A process, told from a later one with the same number by when it started. */
export type ProcessRef = { readonly pid: number; readonly startTicks: number }

/**
 * What marks a command's processes: it stands in their environment, and they hand it on to whatever they start. The name
 * is the source's, so that a command inside a command carries both; the value says which execution it is.
 */
export function tagVariable(processTag: string): string {
  return `UNSTUCK_TREE_${processTag}`
}

/** Where to look for a command's processes. */
export type TreeRoots = TreeTag & {
  /** The command itself, while it is known: it opened a session of its own. */
  readonly leader?: ProcessRef | undefined
  /** Seen in the tree before. Browsers overwrite their environment and leave the session, but not both unseen. */
  readonly known?: readonly ProcessRef[]
  /** A process that is not to be taken for one of them, whatever it carries. */
  readonly exclude?: number | undefined
}

/**
 * Every living process of a command: those in its cgroup, those with one of its marks, those of its session, those seen before; and then
 * whatever descends from one of them, or is in a session that one of them has opened. Never oneself nor whoever started
 * one, whatever the environment says: who looks after a tree is not in it, and a person may have copied the cookie.
 */
export function findTree(roots: TreeRoots): ProcessRef[] {
  const all = listProcesses()
  const known = new Map((roots.known ?? []).map(({ pid, startTicks }) => [pid, startTicks]))
  const members = new Set<number>()
  const sessions = new Set<number>()
  if (roots.leader && !isPidReused(roots.leader)) sessions.add(roots.leader.pid)
  const excluded = new Set([...ancestors(process.pid, all), roots.exclude])
  for (const [pid, stat] of all) {
    if (excluded.has(pid)) continue
    if (known.get(pid) === stat.startTicks || isTagged(pid, stat, roots)) members.add(pid)
  }
  for (let before = -1; before !== members.size;) {
    before = members.size
    for (const pid of members) {
      const { session } = all.get(pid)!
      // One whose leader is gone was opened inside as well, or its members would not carry the cookie.
      if (members.has(session) || !all.has(session)) sessions.add(session)
    }
    for (const [pid, { session, parent }] of all) {
      if ((sessions.has(session) || members.has(parent)) && !excluded.has(pid)) members.add(pid)
    }
  }
  return [...members].map((pid) => ({ pid, startTicks: all.get(pid)!.startTicks }))
}

/** A process and whoever started it, up to the first. */
function ancestors(pid: number, all: ReadonlyMap<number, ProcessStat>): number[] {
  const stat = all.get(pid)
  return stat ? [pid, ...ancestors(stat.parent, all)] : []
}

/** The living children of a process and theirs: cheap enough for every second, but blind for those that were orphaned. */
export function descendants(pid: number): ProcessRef[] {
  const stat = readProcessStat(pid)
  if (!stat || stat.isDead) return []
  const found = childrenOf(pid).flatMap((child) => descendants(child))
  return [{ pid, startTicks: stat.startTicks }, ...found]
}

/** Each thread has its own. */
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

/** A process that ended and came back under the same number is somebody else. */
export function isAlive({ pid, startTicks }: ProcessRef): boolean {
  const stat = readProcessStat(pid)
  return stat !== null && !stat.isDead && stat.startTicks === startTicks
}

/** Sends a signal to those that are still who they were. */
export function signalAll(members: readonly ProcessRef[], signal: NodeJS.Signals): void {
  for (const member of members) if (isAlive(member)) trySignal(member.pid, signal)
}

/** To the group that the command leads. Answers false when nobody is in it any more. */
export function signalGroup(leader: ProcessRef, signal: NodeJS.Signals | 0): boolean {
  return !isPidReused(leader) && trySignal(-leader.pid, signal)
}

/** The number was given to another process: nobody of the old one's group and session is left, or it could not be. */
function isPidReused({ pid, startTicks }: ProcessRef): boolean {
  const stat = readProcessStat(pid)
  return stat !== null && stat.startTicks !== startTicks
}

/** Bytes that these processes use; what they share is counted once. Null where the system does not tell. */
export function memoryBytesOf(members: readonly ProcessRef[]): number | null {
  const parts = members.map(({ pid }) => memoryKilobytes(pid))
  return parts.every((part) => part === null)
    ? null
    : parts.reduce<number>((sum, part) => sum + (part ?? 0), 0) * 1024
}

/** How many processes the kernel has killed for want of memory: in our control group, and on the machine. */
export function countOomKills(): number {
  const own = tryRead('/proc/self/cgroup')?.match(/^0::(.*)$/m)?.[1]
  const group = own === undefined ? null : tryRead(`/sys/fs/cgroup${own}/memory.events`)
  return Math.max(parseOomKills(group), parseOomKills(tryRead('/proc/vmstat')))
}

/** What is there to see: without /proc only the command's own group can be ended, not what has left it. */
export const HAS_PROC = tryRead('/proc/self/stat') !== null

function listProcesses(): Map<number, ProcessStat> {
  const all = new Map<number, ProcessStat>()
  for (const name of HAS_PROC ? readdirSync('/proc') : []) {
    const stat = /^\d+$/.test(name) ? readProcessStat(Number(name)) : null
    if (stat && !stat.isDead) all.set(Number(name), stat)
  }
  return all
}

function isTagged(pid: number, { startTicks }: ProcessStat, roots: TreeRoots): boolean {
  if (isInCgroup(pid, roots)) return true
  // What was there before the command cannot have inherited anything from it.
  if (roots.leader && startTicks < roots.leader.startTicks) return false
  return hasTagVariable(pid, roots) || hasLimitTag(pid, roots)
}

function hasTagVariable(pid: number, { processTag, execution }: TreeTag): boolean {
  const entry = `\0${tagVariable(processTag)}=${execution === undefined ? '' : `${execution}\0`}`
  const environ = tryRead(`/proc/${pid}/environ`)
  return environ !== null && `\0${environ}`.includes(entry)
}

function memoryKilobytes(pid: number): number | null {
  // The share of each process in what several use. Older kernels do not sum it up: then all that it has mapped.
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
    // EPERM: it is there, but belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function tryRead(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
