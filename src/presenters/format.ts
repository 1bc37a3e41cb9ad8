import { shortId } from '../core/model/id.ts'
import type { Severity } from '../core/decide/health.ts'
import { countTargets, type Run, type RunProgress, type RunStatus } from '../core/model/run.ts'
import { describeOrigin, rowName, type RunOrigin, type RunTraits } from '../core/model/traits.ts'
import type { TargetStatus } from '../core/model/target.ts'
import { humanizeDuration, humanizeRange, type Millis } from '../core/model/time.ts'
import type { Liveness } from '../core/model/worker.ts'
import type { AuditEntry, ListedRun } from './records.ts'
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

type ProcessRef = {
  readonly pid: number | null
  readonly host: string | null
  readonly label?: string | null
}

/** `process 4711 on host-a`, or what a user's own table calls it. */
export function formatProcess(one: ProcessRef): string {
  return one.label ?? `process ${formatProcessCell(one)}`
}

/** The same under a heading that names the process. */
export function formatProcessCell({ label, pid, host }: ProcessRef): string {
  return label ?? `${pid} on ${host}`
}

type NamedWorker = { readonly id: string; readonly label: string | null }

/** A worker by the end of its id; one that is known only from a row of your own by that row. */
export function workerName({ id, label }: NamedWorker): string {
  return label ?? shortId(id)
}

/** `5d0c8a21 silent: process 4711 …`, or a reason that names the row itself. */
export function workerReason(
  worker: NamedWorker & { readonly liveness: Liveness; readonly because: string },
): string {
  const { label, liveness, because } = worker
  if (label !== null && because.includes(label)) return because
  return `${workerName(worker)} ${liveness}: ${because}`
}

/** How a target is named in sentences and commands: `pages:17` for a row of your own, else the end of its id. */
export function targetRef(target: {
  readonly id: string
  readonly origin?: RunOrigin | null | undefined
}): string {
  return rowName(target.origin ?? null) ?? shortId(target.id)
}

/** In a column: the own id of a row in full, else the end of the id. */
export function formatRunId(id: string, origin: RunOrigin | null = null): string {
  return rowName(origin) === null ? shortId(id) : origin!.key
}

/** `portal-a`, or with the table of your own: `portal-a (runs)`; with its row, where `formatRunId` does not show it. */
export function formatSource(source: string, origin: RunOrigin | null): string {
  if (origin === null) return source
  return `${source} (${rowName(origin) === null ? describeOrigin(origin) : origin.table})`
}

/** When these runs continue: `a worker starts`, or for rows of tables of your own, when your program does. */
export function nextStartCondition(runs: readonly Pick<Run, 'traits'>[]): string {
  const program = 'your own program takes them up'
  const starters = new Set(runs.map(({ traits }) => traits.continuedBy))
  if (!starters.has('own-program')) return 'a worker starts'
  return starters.has('worker') ? `a worker starts, or ${program}` : program
}

export function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** `1 run`, `2 runs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** `2 things need attention.` */
export function needsAttention(count: number, isOther = false): string {
  return `${plural(count, isOther ? 'other thing' : 'thing')} ${count === 1 ? 'needs' : 'need'} attention.`
}

/** `4 s ago`. Fractions of a second would only change the list at each refresh. */
export function formatAgo(at: Millis | null, now: Millis): string {
  if (at === null) return '–'
  return now - at < 1_000 ? 'now' : `${humanizeDuration(now - at)} ago`
}

/** `in 4 s`, for what is to come. */
export function formatIn(at: Millis, now: Millis): string {
  return at - now < 1_000 ? 'now' : `in ${humanizeDuration(at - now)}`
}

/** Null: unknown. */
export function parseTime(at: string | null): Millis | null {
  return at === null ? null : Date.parse(at)
}

/** A time of a run; null: it is not known. */
export function knownTime({ traits }: Pick<Run, 'traits'>, at: Millis): Millis | null {
  return traits.isUndated ? null : at
}

/** `4 s`, for ages. */
export function formatAge(ms: number | null): string {
  return ms === null ? '–' : humanizeDuration(Math.max(1_000, ms))
}

/** Targets for a crawl; for a run with one target what it reported, else 0/1. */
export function progressOf(run: Run): RunProgress {
  if (run.progress) return { done: run.progress.done, total: run.progress.total }
  const { targets } = run.counts
  return { done: targets.done, total: run.kind === 'single' ? 1 : countTargets(run.counts) }
}

/** How far a run is, as far as it is known. The total grows while targets still come in. */
export type HowFar = Pick<ListedRun, 'done' | 'total' | 'planned' | 'kind'>

export function howFar(run: Run): HowFar {
  return { ...progressOf(run), planned: run.plannedAt !== null, kind: run.kind }
}

const isGrowing = ({ planned, kind }: HowFar): boolean => !planned && kind === 'crawl'

/** `120/200`; `120/200+` while targets still come in; `3/?` or `?/3` where only one of both is known. */
export function formatDoneOfTotal(far: HowFar): string {
  return `${far.done ?? '?'}/${far.total ?? '?'}${isGrowing(far) ? '+' : ''}`
}

/** `42 %`, or why there is no share of the whole. */
export function formatShareDone(far: HowFar): string {
  if (isGrowing(far)) return 'still planning'
  if (far.done === null) return 'share unknown'
  return far.total === null ? 'total unknown' : percent(far.done, far.total)
}

/** Empty while the share is not known. */
export function barOf(far: HowFar): string {
  return progressBar(far.done ?? 0, isGrowing(far) ? 0 : (far.total ?? 0))
}

/** Saved pages; null: those of a user's own table are not counted. */
export function knownPages(
  { pages }: Run['counts'],
  { origin }: Pick<RunTraits, 'origin'>,
): number | null {
  return origin === null ? pages : null
}

/** `12 new, 0 updated, 5 unchanged, 2 skipped`; a row of a user's own table has fewer counters. */
export function formatItems({ counts, traits }: Run): string {
  const { itemsNew, itemsUpdated, itemsUnchanged, skipped } = counts
  const saved = traits.hasTargets
    ? `${itemsNew} new, ${itemsUpdated} updated, ${itemsUnchanged} unchanged`
    : `${itemsNew + itemsUpdated} extracted`
  return `${saved}, ${skipped} skipped`
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

/** `8–11 min` */
export function formatEta({ from, to }: { from: number; to: number }): string {
  return humanizeRange(from * 1_000, to * 1_000)
}

/** `target austin (91bc4f2a)`; the id alone where the key is not known. Of a row of your own, its own id. */
export function targetName({
  target,
  key,
  origin,
}: Pick<AuditEntry, 'target' | 'key'> & {
  readonly origin?: RunOrigin | null | undefined
}): string {
  const id = targetRef({ id: target!, origin })
  return key === null || key === origin?.key ? `target ${id}` : `target ${key} (${id})`
}

/** What an entry of the audit trail is about: a run, a target, or by its name a source. */
export function auditName(
  entry: Pick<AuditEntry, 'run' | 'target' | 'key' | 'source' | 'before'>,
): string {
  const { run, target, source, before } = entry
  if (run === null) return source
  const origin = originOf(before)
  if (target === null || isRunRow(before)) return `run ${rowName(origin) ?? shortId(run)}`
  return targetName({ ...entry, origin })
}

/** An entry about a row of your own has its table and key. */
export function originOf(before: unknown): RunOrigin | null {
  const { table, key } = (before ?? {}) as Partial<RunOrigin>
  return typeof table === 'string' && typeof key === 'string' ? { table, key } : null
}

/** Of a table in which each row is a run: that has one target, which its users do not know. */
export function isRunRow(before: unknown): boolean {
  return (before as { kind?: unknown } | null)?.kind === 'runs'
}

/** `Continue it: …`, `See …`: a command that does something is named after what it does. */
export function introduceCommand(command: string): string {
  const verb = /\bunstuck (\S+)/.exec(command)?.[1] ?? ''
  return `${COMMAND_LEADS[verb] ?? 'See'} \`${command}\`.`
}

const COMMAND_LEADS: Readonly<Record<string, string>> = {
  work: 'Continue it:',
  run: 'Continue it:',
  recover: 'Recover it:',
  clean: 'Clean it:',
  unpark: 'Try them again:',
}
