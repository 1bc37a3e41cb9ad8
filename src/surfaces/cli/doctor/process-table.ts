import { readFileSync } from 'node:fs'
import process from 'node:process'
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
  const text = read(`/proc/${pid}/cmdline`)
  return text === null ? null : text.split('\0').filter((word) => word !== '')
}

/** 0 above PID 1, and above a process that was put into a container from outside. */
function parentOf(pid: number): number {
  const stat = read(`/proc/${pid}/stat`)
  if (stat === null) return 0
  // The name in brackets may itself contain spaces and brackets; fields are counted from after the last one.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
