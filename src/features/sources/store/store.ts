import { toPaused, type PausedRow } from '../../../core/store/command-rows.ts'
import { cleanText } from '../../../core/model/text.ts'
import { LIMITS } from '../../../core/model/limits.ts'
import type { Paused } from '../../../core/model/run.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { AuditInfo, StoreExtension } from '../../../core/store/store.ts'
import { storedText } from '../../../core/store/stored-text.ts'

/** What applies to a source beyond its runs. */
export type SourceState = {
  readonly source: string
  readonly paused: Paused | null
  /** When the supervisor that waits starts its command again; null: none waits. Left behind by a killed supervisor; the next lock holder clears it. */
  readonly nextStartAt: Millis | null
  /** It was asked to start at once. */
  readonly isRunNow: boolean
  /** How its crawl was last worked on from the command line; null: never, or it is unknown. */
  readonly lastWork: LastWork | null
}

/** A command for a POSIX shell without secrets, and where it was started. */
export type LastWork = {
  readonly command: string
  readonly folder: string
  readonly host: string
}

export type SourceRequest = AuditInfo & { readonly source: string }

export interface SourceStore {
  /**
   * Pauses a source or ends its pause, with one audit entry. Nothing of a paused source is claimed or begun. Returns false
   * if it is so already. At the end of a pause the time of its live run starts anew: the pause was not its own.
   */
  setPaused(request: SourceRequest & { readonly paused: boolean }): Promise<boolean>
  /** Records that a supervisor waits for this long, or with null that it waits no longer. Clears `isRunNow`. */
  setNextStart(source: string, inMs: number | null): Promise<void>
  /** Asks the waiting supervisor to start at once. Returns false if none waits, or the source is paused. */
  requestRunNow(request: SourceRequest): Promise<boolean>
  /** Records how its crawl is worked on from now on. What is too long to be kept whole is not kept: a part of it would not run. */
  setLastWork(source: string, work: LastWork): Promise<void>
  /** Returns these sources, or all that are paused or wait, by name. */
  sourceStates(sources?: readonly string[]): Promise<SourceState[]>
}

export const SOURCE_STORE: StoreExtension<SourceStore> = {
  sqlite: async () => (await import('./sqlite.ts')).sourceMethods,
  postgres: async () => (await import('./postgres.ts')).sourceMethods,
  clean: (store) => ({
    setPaused: (request) => store.setPaused(cleaned(request)),
    requestRunNow: (request) => store.requestRunNow(cleaned(request)),
    setLastWork: (source, { command, folder, host }) => {
      const isShort = Buffer.byteLength(command + folder + host) <= LIMITS.evidence
      const [kept, where, on] = isShort ? [command, folder, host].map(cleanText) : ['', '', '']
      return store.setLastWork(source, { command: kept!, folder: where!, host: on! })
    },
  }),
}

function cleaned<T extends AuditInfo>(request: T): T {
  return {
    ...request,
    actor: storedText(request.actor, LIMITS.reason),
    because: storedText(request.because, LIMITS.reason),
  }
}

/** The entry in the audit trail: of the source, not of a run. */
export function sourceEntry(
  action: 'pause' | 'unpause' | 'run-now',
  { source, actor, because }: SourceRequest,
) {
  const target = null
  const isPause = action === 'pause'
  const [before, after] =
    action === 'run-now' ? [{}, {}] : [{ paused: !isPause }, { paused: isPause }]
  return { actor, action, source, run: null, target, because, evidence: null, before, after }
}

export type SourceRow = PausedRow & {
  source: string
  next_start_at: number | null
  run_now_at: number | null
  work_command: string | null
  work_folder: string | null
  work_host: string | null
}

export function toSourceState(row: SourceRow): SourceState {
  return {
    source: row.source,
    paused: toPaused(row),
    nextStartAt: row.next_start_at,
    isRunNow: row.run_now_at !== null,
    lastWork: row.work_command
      ? { command: row.work_command, folder: row.work_folder!, host: row.work_host! }
      : null,
  }
}
