import type { Paused } from '../model/run.ts'
import { UsageError } from '../model/errors.ts'
import type { SourceLock } from '../model/source-lock.ts'
import { asJson } from './new-targets.ts'

/** Row → model for what a wrapped command leaves in the store, as in `rows.ts`. */

const INPUT_BYTES_MAX = 256 * 1024

/** Returns the input of a run's command as JSON; null if there is none. Throws for a value that is not JSON. */
export function serializeInput(source: string, input: unknown): string | null {
  if (input === undefined || input === null) return null
  const hint = ' Give plain data: texts, numbers, lists, objects.'
  const text = asJson(`The input for ${source}`, input, hint)
  if (Buffer.byteLength(text) > INPUT_BYTES_MAX) {
    throw new UsageError(
      `The input for ${source} is larger than ${INPUT_BYTES_MAX / 1024} KB. Keep it in a file and give its path.`,
    )
  }
  return text
}

export type SourceLockRow = {
  source: string
  worker_id: string | null
  since: number | null
  kill_timeout_ms: number
  unlocking_since: number | null
  process_tag: string
  gave_up_at: number | null
  gave_up_because: string | null
  gave_up_seen: boolean | number | null
}

export function toSourceLock(row: SourceLockRow): SourceLock {
  return {
    source: row.source,
    worker: row.worker_id,
    since: row.since,
    killTimeoutMs: row.kill_timeout_ms,
    unlockingSince: row.unlocking_since,
    processTag: row.process_tag,
    gaveUp:
      row.gave_up_at === null
        ? null
        : {
            at: row.gave_up_at,
            because: row.gave_up_because ?? '',
            isAcknowledged: Boolean(row.gave_up_seen),
          },
  }
}

export type PausedRow = { paused_at: number | null; paused_because: string | null }

export function toPaused({ paused_at: at, paused_because: because }: PausedRow): Paused | null {
  return at === null ? null : { at, because: because ?? '' }
}
