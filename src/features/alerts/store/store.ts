import type { RunId } from '../../../core/model/id.ts'
import { LIMITS } from '../../../core/model/limits.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { StoreExtension } from '../../../core/store/store.ts'
import { storedText } from '../../../core/store/stored-text.ts'

/** A situation that needs attention, open until it is over. */
export type Alert = {
  /** Identifies the situation: the same cause is the same alert. */
  readonly cause: string
  /** A hash of the rules that opened it. Processes with the same rules resolve it. */
  readonly owner: string
  readonly rule: string
  readonly source: string | null
  readonly run: RunId | null
  readonly because: string
  /** The command to type. */
  readonly command: string
  /** When it was opened; set anew when a resolved cause returns. */
  readonly since: Millis
  readonly lastSeenAt: Millis
  /** When a message was last sent, perhaps before `since`; null: never. */
  readonly lastSentAt: Millis | null
  /** By destination. */
  readonly deliveries: Readonly<Record<string, AlertDelivery>>
  /** Null: it is open. */
  readonly resolvedAt: Millis | null
}

/** The last messages to one destination. Those before `since` were about an earlier alert of the same cause. */
export type AlertDelivery = {
  /** That the alert is open. */
  readonly sentAt: Millis | null
  /** That it is over. */
  readonly endedAt: Millis | null
}

/** An owner that has not seen its alert for this long has ended: another process takes the alert over. */
export const ALERT_OWNER_TIMEOUT_MS = 120_000

export type NewAlert = Pick<
  Alert,
  'cause' | 'owner' | 'rule' | 'source' | 'run' | 'because' | 'command'
>

/** A finding, before it is matched with the rules. */
export type AlertCandidate = Omit<NewAlert, 'owner'>

export interface AlertStore {
  /** Returns all open alerts, oldest first, or resolved ones, the last resolved first. */
  listAlerts(filter: { open: true } | { open: false; limit: number }): Promise<Alert[]>
  /**
   * Opens the alert. Returns true if this call opened it. Of an open one it changes only `because`, and its owner if that
   * has not seen it for minutes.
   */
  raiseAlert(alert: NewAlert): Promise<boolean>
  /** Records that the destination got the message that the alerts are open (`sent`) or over (`ended`). */
  markDelivered(delivery: {
    causes: readonly string[]
    destination: string
    event: 'sent' | 'ended'
  }): Promise<void>
  /** Resolves the alert if it is open, has this owner and was not seen since it was read. Returns whether it did. */
  resolveAlert(alert: Pick<Alert, 'cause' | 'owner' | 'lastSeenAt'>): Promise<boolean>
  /** Deletes alerts that were resolved before this time, with their deliveries. Returns how many. */
  pruneAlerts(resolvedBefore: Millis): Promise<number>
}

export const ALERT_STORE: StoreExtension<AlertStore> = {
  sqlite: async () => (await import('./sqlite.ts')).alertMethods,
  postgres: async () => (await import('./postgres.ts')).alertMethods,
  clean: (store) => ({
    raiseAlert: (alert) =>
      store.raiseAlert({
        ...alert,
        because: storedText(alert.because, LIMITS.reason),
        command: storedText(alert.command, LIMITS.reason),
      }),
  }),
}

// — Rows of both engines —

export type AlertRow = Pick<
  Alert,
  'cause' | 'owner' | 'rule' | 'source' | 'because' | 'command' | 'since'
> & {
  run_id: string | null
  last_seen_at: number
  resolved_at: number | null
  /** SQLite returns text. */
  deliveries: Alert['deliveries'] | string
}

export function toAlert(row: AlertRow): Alert {
  const deliveries =
    typeof row.deliveries === 'string'
      ? (JSON.parse(row.deliveries) as Alert['deliveries'])
      : row.deliveries
  const times = Object.values(deliveries).flatMap(({ sentAt }) => sentAt ?? [])
  return {
    cause: row.cause,
    owner: row.owner,
    rule: row.rule,
    source: row.source,
    run: row.run_id,
    because: row.because,
    command: row.command,
    since: row.since,
    lastSeenAt: row.last_seen_at,
    lastSentAt: times.length === 0 ? null : Math.max(...times),
    deliveries,
    resolvedAt: row.resolved_at,
  }
}
