import { hash } from 'node:crypto'
import type { Telling } from './notify.ts'
import type { Alert } from '../../core/model/alert.ts'
import type { ChannelName } from '../../core/model/alert-rule.ts'
import type { AlertMessage } from './message.ts'

/** A message, whom it is for and which alerts it tells them of. */
export type Letter = {
  readonly to: ChannelName
  readonly causes: readonly string[]
  readonly message: AlertMessage
}

/** More of one kind at once are one message. */
const SINGLE_MAX = 10
const SHOWN = 3
const SHOWN_CHARS = 200

/** What is told in one look. Five hundred dead runs are one thing to see to. */
export function writeLetters(tellings: readonly Telling[], url: string | null): Letter[] {
  const kinds = Map.groupBy(tellings, ({ to, event, alert }) => `${to} ${event} ${alert.rule}`)
  return [...kinds.values()].flatMap((same) =>
    same.length > SINGLE_MAX ? [digest(same, url)] : same.map((one) => letter(one, url)),
  )
}

function letter(telling: Telling, url: string | null): Letter {
  const { event, alert, to } = telling
  const key = keyOf(telling)
  return {
    to,
    causes: [alert.cause],
    message: { event, key, alert, link: linkTo(url, alert) },
  }
}

function digest(same: readonly Telling[], url: string | null): Letter {
  const [{ event, alert, to }] = same as [Telling]
  const causes = same.map((one) => one.alert.cause).sort()
  const shown = same.slice(0, SHOWN).map((one) => {
    const { source, because } = one.alert
    return `${source ?? 'several'}: ${because.slice(0, SHOWN_CHARS).toWellFormed()}`
  })
  const key = fingerprint(same.map(keyOf).sort())
  const sum = {
    cause: `many ${alert.rule} ${key}`,
    rule: alert.rule,
    source: null,
    run: null,
    because: `${shown.join('; ')} and ${same.length - SHOWN} more`,
    command: 'unstuck alerts list',
    since: Math.min(...same.map((one) => one.alert.since)),
  }
  return { to, causes, message: { event, key, alert: sum, causes, link: linkTo(url, null) } }
}

/** By what was told before: whoever has to tell the same again does so under the same key. */
function keyOf({ event, alert, heardAt }: Telling): string {
  return fingerprint([alert.cause, alert.since, event, heardAt])
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
