/** What people can be told of. */
export const ALERT_KINDS = ['orphans', 'dead', 'parked', 'silent', 'overrun', 'gave-up'] as const
export type AlertKind = (typeof ALERT_KINDS)[number]

/** How people can be told. */
export const CHANNEL_NAMES = ['slack', 'email', 'webhook'] as const
export type ChannelName = (typeof CHANNEL_NAMES)[number]

/** When to tell, of whom, and how. */
export type AlertRule = {
  /** Empty: of all sources. */
  readonly sources: readonly string[]
  /** Empty: it only shows on the dashboard. */
  readonly to: readonly ChannelName[]
  /** People are told again after this long, if it is still so; null: never. */
  readonly repeatMs: number | null
  /** Whether people are told when it is over. */
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

/** What counts without a word in the config: everything shows on the dashboard, and nobody is woken. */
export const DEFAULT_RULES: readonly AlertRule[] = ALERT_KINDS.map((when) => {
  const rule = { sources: [], to: [], repeatMs: DEFAULT_REPEAT_MS, notifyResolved: true }
  return when === 'orphans'
    ? { ...rule, when, moreThan: 3, withinMs: 3_600_000 }
    : { ...rule, when }
})
