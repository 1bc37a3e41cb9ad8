import { hash } from 'node:crypto'
import type { Notification } from './notify.ts'
import type { Alert } from '../../core/model/alert.ts'
import type { ChannelName } from '../../core/model/alert-rule.ts'
import type { AlertMessage } from './message.ts'

/** A message, whom it is for and which alerts it tells them of. */
export type AlertDelivery = {
  readonly to: ChannelName
  readonly causes: readonly string[]
  readonly message: AlertMessage
}

/** More of one kind at once are one message. */
const SINGLE_MAX = 10
const EXAMPLES = 3
const EXAMPLE_MAX = 200

/** What is told in one look. Five hundred dead runs are one thing to see to. */
export function composeDeliveries(
  notifications: readonly Notification[],
  url: string | null,
): AlertDelivery[] {
  const kinds = Map.groupBy(notifications, ({ to, event, alert }) => `${to} ${event} ${alert.rule}`)
  return [...kinds.values()].flatMap((same) =>
    same.length > SINGLE_MAX
      ? [digestDelivery(same, url)]
      : same.map((one) => singleDelivery(one, url)),
  )
}

function singleDelivery(notification: Notification, url: string | null): AlertDelivery {
  const { event, alert, to } = notification
  const key = keyOf(notification)
  return {
    to,
    causes: [alert.cause],
    message: { event, key, alert, link: linkTo(url, alert) },
  }
}

function digestDelivery(same: readonly Notification[], url: string | null): AlertDelivery {
  const [{ event, alert, to }] = same as [Notification]
  const causes = same.map((one) => one.alert.cause).sort()
  const examples = same.slice(0, EXAMPLES).map((one) => {
    const { source, because } = one.alert
    return `${source ?? 'several'}: ${because.slice(0, EXAMPLE_MAX).toWellFormed()}`
  })
  const key = fingerprint(same.map(keyOf).sort())
  const summary = {
    cause: `many ${alert.rule} ${key}`,
    rule: alert.rule,
    source: null,
    run: null,
    because: `${examples.join('; ')} and ${same.length - EXAMPLES} more`,
    command: 'unstuck alerts list',
    since: Math.min(...same.map((one) => one.alert.since)),
  }
  return { to, causes, message: { event, key, alert: summary, causes, link: linkTo(url, null) } }
}

/** By what was told before: whoever has to tell the same again does so under the same key. */
function keyOf({ event, alert, notifiedAt }: Notification): string {
  return fingerprint([alert.cause, alert.since, event, notifiedAt])
}

function fingerprint(of: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(of)).slice(0, 32)
}

/** The page of the dashboard that shows more. */
function linkTo(url: string | null, about: Pick<Alert, 'run' | 'rule'> | null): string | null {
  if (url === null) return null
  const page =
    about === null ? '' : about.run !== null ? `runs/${about.run}` : (PAGES[about.rule] ?? '')
  return new URL(page, url.endsWith('/') ? url : `${url}/`).href
}

const PAGES: Readonly<Record<string, string>> = { orphans: 'history' }
