import type { Severity } from '../core/decide/health.ts'
import type { Run, RunStatus } from '../core/model/run.ts'
import { describeOrigin, type RunOrigin } from '../core/model/traits.ts'
import type { TargetStatus } from '../core/model/target.ts'
import { humanizeDuration, type Millis } from '../core/model/time.ts'
import type { Evidence, Liveness } from '../core/model/worker.ts'
import { runView } from './view.ts'
import type { Style, Span } from '../lib/text/sentence.ts'

export const SEVERITY_STYLE = {
  stuck: 'bad',
  attention: 'warn',
  ok: 'good',
} as const satisfies Record<Severity, Style>

const RUN_STYLE: Record<RunStatus, Style> = {
  queued: 'dim',
  running: 'good',
  interrupted: 'warn',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'dim',
  abandoned: 'bad',
}

/** Labels that say what happened to a run, where the status alone does not. */
export function formatRunStatus(status: RunStatus): Span {
  return {
    text: status === 'abandoned' ? 'Timeout – auto-cleaned' : status,
    style: RUN_STYLE[status],
  }
}

const TARGET_STYLE: Record<TargetStatus, Style | undefined> = {
  planned: 'dim',
  in_progress: undefined,
  done: 'good',
  failed: 'bad',
  stuck: 'bad',
  parked: 'warn',
}

export function formatTargetStatus(status: TargetStatus): Span {
  return { text: status.replace('_', ' '), style: TARGET_STYLE[status] }
}

const LIVENESS_STYLE: Record<Liveness, Style> = {
  present: 'good',
  gone: 'bad',
  silent: 'bad',
  stalled: 'warn',
  unknown: 'dim',
}

export const LIVENESS_STATES = Object.keys(LIVENESS_STYLE) as Liveness[]

export function formatLiveness(liveness: Liveness): Span {
  return { text: liveness, style: LIVENESS_STYLE[liveness] }
}

type ProcessRef = Pick<Evidence, 'pid' | 'host'> & { readonly label?: string | null }

/** `process 4711 on host-a`, or what a user's own table calls it. */
export function formatProcess(one: ProcessRef): string {
  return one.label ?? `process ${formatProcessCell(one)}`
}

/** The same under a heading that names the process. */
export function formatProcessCell({ label, pid, host }: ProcessRef): string {
  return label ?? `${pid} on ${host}`
}

/** `portal-a`, or with the row of a table of your own: `portal-a (row 4711 of runs)`. */
export function formatSource(source: string, origin: RunOrigin | null): string {
  return origin ? `${source} (${describeOrigin(origin)})` : source
}

/** When these runs continue: `a worker starts`, or for rows of tables of your own, when your program does. */
export function nextStartCondition(runs: readonly Pick<Run, 'traits'>[]): string {
  const program = 'your own program takes them up'
  const starters = new Set(runs.map(({ traits }) => traits.continuedBy))
  if (!starters.has('own-program')) return 'a worker starts'
  return starters.has('worker') ? `a worker starts, or ${program}` : program
}

/** `1 run`, `2 runs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** `4 s ago`. Fractions of a second would only change the list at each refresh. */
export function formatAgo(at: Millis | null, now: Millis): string {
  if (at === null) return '–'
  return now - at < 1_000 ? 'now' : `${humanizeDuration(now - at)} ago`
}

/** `4 s`, for ages. */
export function formatAge(ms: number): string {
  return humanizeDuration(Math.max(1_000, ms))
}

/** `120/200`; with a plus while targets still come in: the total is not known yet. */
export function formatDoneOfTotal(run: Run): string {
  const { done, total } = runView(run)
  return `${done}/${total}${run.plannedAt === null && run.kind === 'crawl' ? '+' : ''}`
}

const BAR_CELLS = 8

/** Full only when all is done, empty only when nothing is done. */
export function progressBar(done: number, total: number): string {
  const share = total > 0 ? Math.min(1, done / total) : 0
  const full =
    share === 1
      ? BAR_CELLS
      : share === 0
        ? 0
        : Math.max(1, Math.min(BAR_CELLS - 1, Math.round(share * BAR_CELLS)))
  return '█'.repeat(full) + '░'.repeat(BAR_CELLS - full)
}

/** 0 and 100 are reserved for nothing and all. */
export function percent(done: number, total: number): string {
  if (total <= 0 || done <= 0) return '0 %'
  if (done >= total) return '100 %'
  return `${Math.max(1, Math.min(99, Math.round((100 * done) / total)))} %`
}
