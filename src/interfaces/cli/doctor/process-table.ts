import { readFileSync } from 'node:fs'
import process from 'node:process'
import { readProcessStat } from '../../../core/host/identity.ts'
import type { ProcessFacts, ProcessTable } from './signals.ts'

const DEPTH_MAX = 64

/** Reads /proc. The table is empty if it cannot be read. */
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

/** Returns 0 for PID 1, and for a process that was started from outside its container. */
function parentOf(pid: number): number {
  return readProcessStat(pid)?.parent ?? 0
}
