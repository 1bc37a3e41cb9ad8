import { DEFAULT_RULES, type AlertRule, type ChannelName } from '../features/alerts/rule.ts'
import type { Channel } from '../features/alerts/channel.ts'
import { webhookChannel } from '../features/alerts/channels.ts'
import { AlertService, type AlertServiceOptions } from '../features/alerts/service.ts'
import { makePolicyOf, NO_OVERRIDES } from '../core/model/policy-of.ts'
import type { Store } from '../core/store/store.ts'
import type { HttpSink } from './test-receivers.ts'

/** What the tests of alerts have in common. */

export const ALLOW_LOCAL = { allowPrivate: true, allowHttp: true }

/** All kinds, told to these. */
export function rulesTo(...to: ChannelName[]): AlertRule[] {
  return DEFAULT_RULES.map((rule) => ({ ...rule, to }))
}

export function webhookTo(sink: HttpSink): Channel {
  return webhookChannel({ url: sink.url, secret: null, ...ALLOW_LOCAL })
}

export function makeAlertService(
  store: Store,
  channels: Channel[],
  overrides: Partial<AlertServiceOptions> = {},
): AlertService {
  return new AlertService({
    open: async () => store,
    policyOf: makePolicyOf(NO_OVERRIDES),
    rules: rulesTo(...channels.map(({ name }) => name)),
    channels,
    url: 'https://unstuck.example/ops',
    worker: () => null,
    log: () => {},
    ...overrides,
  })
}

/** What was told, in short. */
export function receivedAlerts({ received }: HttpSink): string[] {
  return received.map(({ body }) => `${body.event} ${body.alert.rule}`)
}

export async function waitUntil(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}
