import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import process from 'node:process'
import { tryRead, type ReadFile, type TreeTag } from './cgroup.ts'

/*
 * A mark that a process cannot lose by accident. The limit of the resident set (RLIMIT_RSS) is inherited by every child,
 * through `env -i`, setsid, a double fork and closed descriptors, and Linux has not enforced it since 2.4.30. Its soft
 * value is set to a huge number that names the source and the execution.
 */

const BASE = 1n << 62n
const SOURCE_BITS = 40n
const EXECUTION_BITS = 20n

/**
 * Calls `start` while this process carries the mark, so that what it starts inherits it. Returns false, without calling
 * it, where the mark cannot be set: no `prlimit` (util-linux), or a lower hard limit.
 */
export function startWithLimitTag(
  { processTag, execution }: Required<TreeTag>,
  start: () => void,
): boolean {
  const before = softLimit('self')
  const limit =
    BASE | (hash(processTag, SOURCE_BITS) << EXECUTION_BITS) | hash(execution, EXECUTION_BITS)
  if (before === null || !setSoftLimit(String(limit))) return false
  try {
    start()
  } finally {
    // A mark that stays would make this process one of the command's.
    for (let tries = 0; tries < 3 && !setSoftLimit(before); tries++);
  }
  return true
}

/** Tests whether a process inherited the mark of the command. */
export function hasLimitTag(
  pid: number,
  { processTag, execution }: TreeTag,
  read: ReadFile = tryRead,
): boolean {
  const limit = softLimit(pid, read)
  if (limit === null || limit === UNLIMITED) return false
  const value = BigInt(limit)
  const isSource =
    value >> EXECUTION_BITS === ((BASE >> EXECUTION_BITS) | hash(processTag, SOURCE_BITS))
  if (!isSource || execution === undefined) return isSource
  return BigInt.asUintN(Number(EXECUTION_BITS), value) === hash(execution, EXECUTION_BITS)
}

const UNLIMITED = 'unlimited'

function softLimit(pid: number | 'self', read: ReadFile = tryRead): string | null {
  const limits = read(`/proc/${pid}/limits`) ?? ''
  return /^Max resident set +(\d+|unlimited) /m.exec(limits)?.[1] ?? null
}

/** Node cannot set a limit itself. Blocks for about 5 ms: nothing else may be started meanwhile. */
function setSoftLimit(value: string): boolean {
  try {
    const args = ['--pid', String(process.pid), `--rss=${value}:`]
    execFileSync('prlimit', args, { stdio: 'ignore', timeout: 5_000 })
  } catch {
    // `prlimit` is missing, was refused or timed out. The limit that is read afterwards decides.
  }
  return softLimit('self') === value
}

function hash(text: string, bits: bigint): bigint {
  const digest = createHash('sha256').update(text).digest().readBigUInt64BE()
  return BigInt.asUintN(Number(bits), digest)
}
