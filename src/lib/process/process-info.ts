import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { humanizeDuration } from '../../core/model/time.ts'
import { redactArguments } from '../text/redact-arguments.ts'
import { safeText } from '../text/safe-text.ts'
import type { ProcessRef } from './process-tree.ts'

/** A process of this machine, as an operator sees it. */
export type ProcessInfo = ProcessRef & {
  readonly host: string
  /** Its program and arguments, without secrets. */
  readonly command: string
  /** Milliseconds since it was started. */
  readonly ageMs: number
}

const COMMAND_MAX = 200
/** Linux reports start times in this unit to every program, whatever the kernel's own tick is. */
const TICKS_PER_SECOND = 100

/** Describes a process; its command is empty if it has just ended. */
export function describeProcess(ref: ProcessRef): ProcessInfo {
  const command = safeText(redactArguments(commandLine(ref.pid)).join(' '))
  return {
    ...ref,
    host: hostname(),
    command: command.length > COMMAND_MAX ? `${command.slice(0, COMMAND_MAX - 1)}…` : command,
    ageMs: startedAgoMs(ref.startTicks),
  }
}

/** `process 4711 on box (python scraper.py), for 3 min` */
export function nameProcess({ pid, host, command, ageMs }: ProcessInfo): string {
  return `process ${pid} on ${host} (${command}), for ${humanizeDuration(ageMs)}`
}

/** Returns how long ago a process of this machine was started. */
export function startedAgoMs(startTicks: number): number {
  return Math.max(0, Math.round((uptime() - startTicks / TICKS_PER_SECOND) * 1_000))
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean)
  } catch {
    return []
  }
}
