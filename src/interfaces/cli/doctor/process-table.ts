import { readFileSync } from 'node:fs'
import process from 'node:process'
import { readProcessStat } from '../../../core/host/identity.ts'
import type { ProcessFacts, ProcessTable } from './signals.ts'

const DEPTH_MAX = 64

/** Reads /proc. Where there is none, or it may not be read, the table is empty. */
export function readProcessTable(): ProcessTable {
  const ancestors: ProcessFacts[] = []
  for (let pid = process.ppid; pid > 0 && ancestors.length < DEPTH_MAX; pid = parentOf(pid)) {
    ancestors.push({ pid, argv: argvOf(pid) ?? [] })
  }
  const argv = argvOf(1)
  return { first: argv && { pid: 1, argv }, ancestors }
}

function argvOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return text.split('\0').filter((word) => word !== '')
  } catch {
    return null
  }
}

/** 0 above PID 1, and above a process that was put into a container from outside. */
function parentOf(pid: number): number {
  return readProcessStat(pid)?.parent ?? 0
}
