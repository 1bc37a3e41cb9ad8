import type { WorkerId } from '../../core/model/id.ts'
import type { Channel } from './channel.ts'
import { emailChannel } from './email.ts'
import { slackChannel } from './slack.ts'
import { webhookChannel } from './webhook.ts'
import { redactor } from '../../core/model/redact.ts'
import { AlertService } from './service.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { Store } from '../../core/store/store.ts'
import type { AlertSettings } from './config.ts'
import { alertSecrets } from './view.ts'
import type { Settings } from '../../app/config.ts'

/**
 * Whoever tells people what the config's rules ask for, once it is started. `worker`: the one that lives in this process,
 * as far as one does.
 */
export function makeAlertService(
  open: () => Promise<Store>,
  { alerts, url, policyOf }: Settings,
  log: (text: string) => void,
  worker: () => WorkerId | null = () => null,
  clock: Clock = REAL_CLOCK,
): AlertService {
  const redacted = redactor(alertSecrets(alerts))
  return new AlertService({
    open,
    policyOf,
    rules: alerts.rules,
    channels: makeChannels(alerts),
    url,
    worker,
    log: (text) => log(redacted(text)),
    clock,
  })
}

/** The channels that something can be sent through. */
export function makeChannels({ channels }: AlertSettings): Channel[] {
  const { slack, email, webhook } = channels
  return [
    ...(slack ? [slackChannel(slack)] : []),
    ...(email ? [emailChannel(email)] : []),
    ...(webhook ? [webhookChannel(webhook)] : []),
  ]
}
