import { sayRow, type AdoptedRef, type Run, type RunStatus } from '../core/model/run.ts'
import type { TargetStatus } from '../core/model/target.ts'
import { inWords, type Millis } from '../core/model/time.ts'
import type { Evidence, Sign } from '../core/model/worker.ts'
import { runView, type RunView } from './view.ts'
import type { Ink, Span } from '../lib/terminal/table.ts'

const RUN_INK: Record<RunStatus, Ink> = {
  queued: 'dim',
  running: 'good',
  interrupted: 'warn',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'dim',
  abandoned: 'bad',
}

/** People read what became of it rather than what we call it. */
export function runStatus(status: RunStatus): Span {
  return { text: status === 'abandoned' ? 'Timeout – auto-cleaned' : status, ink: RUN_INK[status] }
}

const TARGET_INK: Record<TargetStatus, Ink | undefined> = {
  planned: 'dim',
  in_progress: undefined,
  done: 'good',
  failed: 'bad',
  stuck: 'bad',
  parked: 'warn',
}

export function targetStatus(status: TargetStatus): Span {
  return { text: status.replace('_', ' '), ink: TARGET_INK[status] }
}

const SIGN_INK: Record<Sign, Ink> = {
  present: 'good',
  gone: 'bad',
  silent: 'bad',
  stalled: 'warn',
  unknown: 'dim',
}

export function workerSign(sign: Sign): Span {
  return { text: sign, ink: SIGN_INK[sign] }
}

type Somebody = Pick<Evidence, 'pid' | 'host'> & { readonly who?: string | null }

/** `process 4711 on host-a`, or what a user's own table calls it. */
export function whoWords(one: Somebody): string {
  return one.who ?? `process ${whoCell(one)}`
}

/** The same where a heading says that it is a process. */
export function whoCell({ who, pid, host }: Somebody): string {
  return who ?? `${pid} on ${host}`
}

type Adopted = { readonly adopted?: AdoptedRef | null | undefined }

/** `portal-a`, and of a user's own table which row: `portal-a (row 4711 of runs)`. */
export function sourceOf({ source, adopted }: Pick<RunView, 'source'> & Adopted): string {
  return adopted ? `${source} (${sayRow(adopted)})` : source
}

/** When such go on: `a worker starts`, or for rows of a user's own tables, when their program does. */
export function whoTakesUp(areAdopted: readonly boolean[]): string {
  const program = 'your own program takes them up'
  if (!areAdopted.includes(true)) return 'a worker starts'
  return areAdopted.includes(false) ? `a worker starts, or ${program}` : program
}

/** `1 run`, `2 runs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** `4 s ago`. Fractions of a second only make a list restless. */
export function ago(at: Millis | null, now: Millis): string {
  if (at === null) return '–'
  return now - at < 1_000 ? 'now' : `${inWords(now - at)} ago`
}

/** `4 s`, for ages. */
export function age(ms: number): string {
  return inWords(Math.max(1_000, ms))
}

/** `120/200`; with a plus while targets still come in: the total is not known yet. */
export function doneOfTotal(run: Run): string {
  const { done, total } = runView(run)
  return `${done}/${total}${run.plannedAt === null && run.kind === 'crawl' ? '+' : ''}`
}

const CELLS = 8

/** Full only when all is done, empty only when nothing is. */
export function bar(done: number, total: number): string {
  const share = total > 0 ? Math.min(1, done / total) : 0
  const full =
    share === 1
      ? CELLS
      : share === 0
        ? 0
        : Math.max(1, Math.min(CELLS - 1, Math.round(share * CELLS)))
  return '█'.repeat(full) + '░'.repeat(CELLS - full)
}

/** 0 and 100 are kept for nothing and all. */
export function percent(done: number, total: number): string {
  if (total <= 0 || done <= 0) return '0 %'
  if (done >= total) return '100 %'
  return `${Math.max(1, Math.min(99, Math.round((100 * done) / total)))} %`
}
