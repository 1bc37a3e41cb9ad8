/** The events that can raise an alert. */
export const ALERT_KINDS = ['orphans', 'dead', 'parked', 'silent', 'overrun', 'gave-up'] as const
/** What can raise an alert. */
export type AlertKind = (typeof ALERT_KINDS)[number]

/** The channels of notifications. */
export const CHANNEL_NAMES = ['slack', 'email', 'webhook'] as const
/** The name of a channel. */
export type ChannelName = (typeof CHANNEL_NAMES)[number]

/** When to alert, for which sources, and over which channels. */
export type AlertRule = {
  /** Empty: all sources. */
  readonly sources: readonly string[]
  /** Empty: the alert is only listed. */
  readonly to: readonly ChannelName[]
  /** Repeats the notification after this long while the alert is open; null: never. */
  readonly repeatMs: number | null
  /** Whether to notify when the alert is resolved. */
  readonly notifyResolved: boolean
} & (
  | {
      readonly when: 'orphans'
      readonly moreThan: number
      readonly withinMs: number
    }
  | { readonly when: Exclude<AlertKind, 'orphans'> }
)

export const DEFAULT_REPEAT_MS = 4 * 3_600_000

/** Rules without a config: everything shows on the dashboard, and no notification is sent. */
export const DEFAULT_RULES: readonly AlertRule[] = ALERT_KINDS.map((when) => {
  const rule = { sources: [], to: [], repeatMs: DEFAULT_REPEAT_MS, notifyResolved: true }
  return when === 'orphans'
    ? { ...rule, when, moreThan: 3, withinMs: 3_600_000 }
    : { ...rule, when }
})
