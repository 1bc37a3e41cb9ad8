import { readFileSync, readlinkSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import process from 'node:process'
import type { Evidence, ProcessIdentity } from '../model/worker.ts'

/** Returns the identity of this process. */
export function thisProcess(): ProcessIdentity {
  return {
    host: hostname(),
    pid: process.pid,
    startTicks: readProcessStat(process.pid)?.startTicks ?? null,
    bootId: bootId(),
    pidNamespace: pidNamespace(),
  }
}

/** Returns whether a pid of that process is valid here: same kernel and pid namespace. The host name proves neither. */
export function isLocalProcess(other: ProcessIdentity): boolean {
  return (
    other.bootId !== null &&
    other.bootId === bootId() &&
    other.pidNamespace !== null &&
    other.pidNamespace === pidNamespace()
  )
}

/** Returns whether a process still runs, as far as this process can see. `gone` only if the kernel proves it. */
export function processState(other: ProcessIdentity): Evidence['process'] {
  if (!isLocalProcess(other)) return 'unknown'
  const found = findProcess(other.pid)
  // A process of which the system hides the start may be another one with the same id.
  if (found === 'hidden') return 'unknown'
  const isSame = other.startTicks === null || found?.startTicks === other.startTicks
  return found && isSame ? 'alive' : 'gone'
}

/** Finds a running process of this host by its id; null: there is none. `hidden`: there is one, without an entry in /proc. */
export function findProcess(pid: number): ProcessStat | 'hidden' | null {
  const stat = readProcessStat(pid)
  if (stat) return stat.isDead ? null : stat
  try {
    process.kill(pid, 0)
    return 'hidden'
  } catch (error) {
    // EPERM: the process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? null : 'hidden'
  }
}

let boot: string | null | undefined

export function bootId(): string | null {
  if (boot === undefined)
    boot = tryRead(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
  return boot
}

/** Milliseconds since boot, the same in all processes of this host. Cannot be set. */
export function uptimeMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}

/** A larger difference between the machine's uptime and this clock counts as suspended time. */
const SUSPENDED_MIN_MS = 1_000
const MEASURE_EVERY_MS = 1_000
let suspendedMs = 0
let measuredAt = -Infinity

/** The same clock including suspended time, which the system keeps in hundredths of a second. */
export function bootMs(): number {
  const now = uptimeMs()
  if (now - measuredAt >= MEASURE_EVERY_MS) {
    measuredAt = now
    const gap = uptime() * 1_000 - now
    // A process that was paused between the two readings has measured the pause instead.
    const isSound = uptimeMs() - now < SUSPENDED_MIN_MS / 10
    if (isSound && gap - suspendedMs >= SUSPENDED_MIN_MS) suspendedMs = Math.round(gap)
  }
  return now + suspendedMs
}

/** Identifies the clock of `bootMs`: one per boot and time namespace. Null if the system does not tell. */
export function clockId(): string | null {
  const boot = bootId()
  return boot === null ? null : `${boot} ${timeNamespace()}`
}

let timeNs: string | undefined

function timeNamespace(): string {
  return (timeNs ??= tryRead(() => readlinkSync('/proc/self/ns/time')) ?? '')
}

let namespace: string | null | undefined

function pidNamespace(): string | null {
  if (namespace === undefined) namespace = tryRead(() => readlinkSync('/proc/self/ns/pid'))
  return namespace
}

export type ProcessStat = {
  readonly parent: number
  /** Pid of the process that opened the session; it may have ended. */
  readonly session: number
  readonly startTicks: number
  readonly isDead: boolean
}

/** Reads /proc/PID/stat. Returns null if the process does not exist or is not shown. */
export function readProcessStat(pid: number): ProcessStat | null {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  if (stat === null) return null
  // The name in brackets may itself contain spaces and brackets; fields are counted from after the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const state = fields[0]!
  return {
    parent: Number(fields[1]),
    session: Number(fields[3]),
    startTicks: Number(fields[19]),
    isDead: state === 'Z' || state === 'X',
  }
}

function tryRead(read: () => string): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
