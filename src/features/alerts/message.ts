import type { Alert } from '../../core/model/alert.ts'
import { shortId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../core/events/safe-text.ts'

/** What people are told about one alert. */
export type AlertMessage = {
  readonly event: 'raised' | 'repeated' | 'resolved' | 'test'
  /** The same for every try at the same telling, by whichever process. */
  readonly key: string
  readonly alert: Pick<Alert, 'cause' | 'rule' | 'source' | 'run' | 'because' | 'command' | 'since'>
  /** Many of one kind in one message, of which `alert` is only the sum: all that it stands for. */
  readonly causes?: readonly string[]
  /** Where the dashboard shows it; null when nobody said where that is. */
  readonly link: string | null
}

/** A message in lines, with all that came from web pages made harmless to look at. */
export type FormattedMessage = {
  /** One line, short enough for the subject of a mail. */
  readonly headline: string
  readonly because: string
  /** What to type; null when it is over. */
  readonly command: string | null
  readonly link: string | null
}

const HEADLINE_MAX = 150
const BECAUSE_MAX = 1_000
const COMMAND_MAX = 300

export function formatMessage({ event, alert, causes, link }: AlertMessage): FormattedMessage {
  const prefix = { raised: '', repeated: 'still: ', resolved: 'resolved: ', test: '' }[event]
  return {
    headline: cleanLine(
      prefix + (causes ? digestSubject(alert, causes.length) : subjectOf(alert)),
      HEADLINE_MAX,
    ),
    because: cleanLine(alert.because, BECAUSE_MAX),
    command: event === 'resolved' ? null : cleanLine(alert.command, COMMAND_MAX),
    link,
  }
}

function subjectOf({ rule, run, source }: AlertMessage['alert']): string {
  const whose = source === null ? '' : ` of ${source}`
  const which = run === null ? whose : ` ${shortId(run)}${whose}`
  switch (rule) {
    case 'dead':
    case 'silent':
      return `${rule} run${which}`
    case 'overrun':
      return `run${which} takes longer than it may`
    case 'parked':
      return `parked targets in run${which}`
    case 'orphans':
      return `runs${whose} lose their workers too often`
    case 'gave-up':
      return `gave up on ${source ?? 'a command'}`
    default:
      return 'a test of this channel'
  }
}

function digestSubject({ rule }: AlertMessage['alert'], count: number): string {
  switch (rule) {
    case 'dead':
    case 'silent':
      return `${count} ${rule} runs`
    case 'overrun':
      return `${count} runs take longer than they may`
    case 'parked':
      return `parked targets in ${count} runs`
    case 'orphans':
      return `runs lose their workers too often, by ${count} rules`
    default:
      return `gave up on ${count} commands`
  }
}

function cleanLine(text: string, max: number): string {
  const safe = safeText(redact(text))
  return safe.length <= max ? safe : `${safe.slice(0, max - 1).toWellFormed()}…`
}
