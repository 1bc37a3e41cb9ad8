import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { kill, waitFor, type ProcessTestContext, type Program } from './harness.ts'

/**
 * A command that ticks into a file every 5 ms, with the machine's clock, and so does a grandchild of it that has left its
 * group and is deaf to SIGTERM. Each line: which copy, who, when in microseconds.
 */
const TICKER = `
exec 9<> <(:)
tick() { while :; do echo "$1 $2 $EPOCHREALTIME" >> "$STAGE/ticks"; read -t 0.005 -u 9; done; }
export -f tick
copy=$$
setsid bash -c 'exec 9<> <(:); trap "" TERM; tick '$copy' grandchild' &
trap 'exit 0' TERM
tick $copy leader
`

export function ticker(ctx: ProcessTestContext): string[] {
  const path = join(ctx.folder, 'ticker.sh')
  writeFileSync(path, TICKER)
  return ['bash', path]
}

export type Tick = { readonly copy: string; readonly who: string; readonly at: number }

export function ticks(ctx: ProcessTestContext): Tick[] {
  let text = ''
  try {
    text = readFileSync(join(ctx.folder, 'ticks'), 'utf8')
  } catch {
    // None yet.
  }
  // The last line may be half written.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [copy = '', who = '', at = ''] = line.split(' ')
      return { copy, who, at: Number(at.replace('.', '')) }
    })
}

/** Whose tick was the last; null before the first. */
export function lastCopy(ctx: ProcessTestContext): string | null {
  try {
    const file = openSync(join(ctx.folder, 'ticks'), 'r')
    try {
      const tail = Buffer.alloc(200)
      const from = Math.max(0, fstatSync(file).size - tail.length)
      const lines = tail.toString('utf8', 0, readSync(file, tail, 0, tail.length, from)).split('\n')
      return lines.at(-2)?.split(' ', 1)[0] ?? null
    } finally {
      closeSync(file)
    }
  } catch {
    return null
  }
}

/** From the first tick of each copy, leader or grandchild, to its last; in the order they began. */
export function lifetimes(all: readonly Tick[]): { copy: string; from: number; to: number }[] {
  const byCopy = Map.groupBy(all, ({ copy }) => copy)
  return [...byCopy]
    .map(([copy, mine]) => {
      const times = mine.map(({ at }) => at)
      return { copy, from: Math.min(...times), to: Math.max(...times) }
    })
    .sort((a, b) => a.from - b.from)
}

/** Pairs of copies that lived at the same time. */
export function overlaps(all: readonly Tick[]): string[] {
  return lifetimes(all).flatMap(({ copy, from }, i, sorted) => {
    const before = sorted[i - 1]
    if (!before || from > before.to) return []
    return [`${before.copy} and ${copy}: ${before.to - from} µs together`]
  })
}

/** The watchdog of an `unstuck run`, once it is there. */
export function waitForWatchdog(program: Program): Promise<number> {
  return waitFor('a watchdog', () => findWatchdog(program))
}

/** Kills an `unstuck run` and its watchdog. Both are stopped before, so that neither can react to the other's death. */
export async function killWithWatchdog(program: Program): Promise<void> {
  const pids = [program.pid, await waitForWatchdog(program)]
  for (const signal of ['SIGSTOP', 'SIGKILL'] as const) for (const pid of pids) kill(pid, signal)
  await program.waitForExit()
}

/** The same at this moment; one that is just starting or ending has none. */
export function findWatchdog({ pid }: Program): number | undefined {
  return childrenOf(pid).find(isWatchdog)
}

/** The copies of a command that an `unstuck work --exec --targets` runs at this moment. */
export function findCopies({ pid }: Program): number[] {
  return childrenOf(pid).filter(isWatchdog).flatMap(childrenOf)
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) =>
      tryRead(`/proc/${name}/stat`)
        .replace(/^.*\) . /s, '')
        .startsWith(`${pid} `),
    )
    .map(Number)
}

function isWatchdog(pid: number): boolean {
  return tryRead(`/proc/${pid}/cmdline`).includes('watchdog-process')
}

function tryRead(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
