import { humanizeDuration, iso, type Millis } from '../core/model/time.ts'
import { nameProcess } from '../lib/process/process-info.ts'
import type { Leftover } from '../operator/leftover-processes.ts'
import { firstSentences, type Section, type Sentence } from '../lib/text/sentence.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { plural } from './format.ts'
import type { Attention, LeftoverProcess } from './results.ts'

/** The words for processes that an earlier copy of a command left, for all interfaces. */

/** The JSON of `recover` and `check`. `ended`: what was ended; null in a preview. */
export function leftoverViews(
  leftovers: readonly Leftover[],
  now: Millis,
  ended: readonly Leftover[] | null = null,
): LeftoverProcess[] {
  const gone = new Set(ended?.flatMap(({ processes }) => processes.map(({ pid }) => pid)))
  return leftovers.flatMap(({ lock: { source }, processes }) =>
    processes.map(({ pid, host, command, ageMs }) => ({
      source,
      host,
      pid,
      command,
      since: iso(now - ageMs),
      outcome: ended === null ? ('planned' as const) : gone.has(pid) ? 'ended' : 'running',
    })),
  )
}

/** The item of `status`, `doctor` and the dashboard. */
export function leftoverItem({ lock: { source }, processes }: Leftover): Attention {
  return {
    run: null,
    source,
    what: describeLeftover(processes),
    because: processes.slice(0, SHOWN_MAX).map(nameProcess).join(', '),
    command: unstuckCommand('recover', [], { source }),
  }
}

/** `2 processes of an earlier copy still run` */
export function describeLeftover(processes: readonly unknown[]): string {
  const many = plural(processes.length, 'process', 'processes')
  return `${many} of an earlier copy still ${processes.length === 1 ? 'runs' : 'run'}`
}

/** The heading after recovery. */
export const ENDED = 'Processes of earlier copies'

/** The section of `recover`. `command` ends what still runs. */
export function leftoverSection(
  processes: readonly LeftoverProcess[],
  now: Millis,
  command: string,
): Section {
  const isPreview = processes.some(({ outcome }) => outcome === 'planned')
  const sentences = processes.map(({ source, host, pid, command, since, outcome }): Sentence => [
    '- ',
    { text: source, style: 'strong' },
    `: process ${pid} on ${host}, for ${humanizeDuration(now - Date.parse(since))}: ${command}${OUTCOME[outcome]}`,
  ])
  const note =
    'An ended process cannot be brought back; the next start of its source continues from what is saved.'
  return {
    heading: isPreview ? 'Processes of earlier copies that would be ended' : ENDED,
    sentences: [
      ...firstSentences(sentences, '`--json` has all'),
      ...(processes.some(({ outcome }) => outcome === 'running')
        ? [[`\`${command}\` ends them.`]]
        : []),
      [{ text: note, style: 'dim' }],
    ],
  }
}

const OUTCOME = { planned: '', ended: ': ended', running: ': still runs' }
const SHOWN_MAX = 5
