import type { TextWriter } from '../../lib/terminal/text-writer.ts'

const NAVIGATION_KEYS: readonly [string, string][] = [
  ['1 – 5, Tab', 'runs, workers, recovery, dead letters, history'],
  ['↑ ↓, j k', 'move; PgUp PgDn by a page, Home End to the ends'],
  ['Enter', 'open what is chosen; Esc goes back'],
  ['/', 'filter: every word must be in what a row says; Enter keeps it, Esc drops it'],
  ['s', 'another order; which one stands in the first line'],
  ['q, Ctrl-C', 'quit; Ctrl-Z sets it aside, `fg` brings it back'],
]

const ACTION_KEYS: readonly [string, string][] = [
  ['R', 'recover what the dead and the silent held, as `unstuck recover`'],
  ['C', 'mark dead runs as “Timeout – auto-cleaned”, as `unstuck clean`'],
  ['c', 'cancel the chosen run, as `unstuck cancel`'],
  ['r', 'on a dead letter: put its targets back in line, from their last saved pages'],
  ['u', 'take back what was last done from here, else to the chosen run, as `unstuck revert`'],
]

/** Which keys there are. */
export function printHelp(writer: TextWriter, readonly: boolean, where: string | null): void {
  writer.line({ text: 'Look', style: 'strong' })
  printKeys(writer, NAVIGATION_KEYS)
  writer.heading('Act')
  if (readonly) writer.paragraph('This is a read-only look: start it without --readonly to act.')
  else {
    printKeys(writer, ACTION_KEYS)
    writer.paragraph('Each shows what it would do first, and does it only after y.')
  }
  if (where === null) return
  writer.blank()
  writer.paragraph({ text: `The database is ${where}.`, style: 'dim' })
}

const KEYS_WIDTH = 12

function printKeys(writer: TextWriter, keys: readonly [string, string][]): void {
  for (const [key, does] of keys) {
    if (writer.columns >= 60) writer.line({ text: key.padEnd(KEYS_WIDTH), style: 'strong' }, does)
    else writer.paragraph('- ', { text: key, style: 'strong' }, `: ${does}`)
  }
}
