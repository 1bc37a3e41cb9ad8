import type { Paper } from '../../lib/terminal/text-writer.ts'

const LOOK: readonly [string, string][] = [
  ['1 – 5, Tab', 'runs, workers, recovery, dead letters, history'],
  ['↑ ↓, j k', 'move; PgUp PgDn by a page, Home End to the ends'],
  ['Enter', 'open what is chosen; Esc goes back'],
  ['/', 'filter: every word must be in what a row says; Enter keeps it, Esc drops it'],
  ['s', 'another order; which one stands in the first line'],
  ['q, Ctrl-C', 'quit; Ctrl-Z sets it aside, `fg` brings it back'],
]

const ACT: readonly [string, string][] = [
  ['R', 'recover what the dead and the silent held, as `unstuck recover`'],
  ['C', 'mark dead runs as “Timeout – auto-cleaned”, as `unstuck clean`'],
  ['c', 'cancel the chosen run, as `unstuck cancel`'],
  ['r', 'on a dead letter: put its targets back in line, from their last saved pages'],
  ['u', 'take back what was last done from here, else to the chosen run, as `unstuck revert`'],
]

/** Which keys there are. */
export function printHelp(paper: Paper, readonly: boolean, where: string | null): void {
  paper.line({ text: 'Look', ink: 'strong' })
  printKeys(paper, LOOK)
  paper.heading('Act')
  if (readonly) paper.say('This is a read-only look: start it without --readonly to act.')
  else {
    printKeys(paper, ACT)
    paper.say('Each shows what it would do first, and does it only after y.')
  }
  if (where === null) return
  paper.blank()
  paper.say({ text: `The database is ${where}.`, ink: 'dim' })
}

const KEYS_WIDTH = 12

function printKeys(paper: Paper, keys: readonly [string, string][]): void {
  for (const [key, does] of keys) {
    if (paper.columns >= 60) paper.line({ text: key.padEnd(KEYS_WIDTH), ink: 'strong' }, does)
    else paper.say('- ', { text: key, ink: 'strong' }, `: ${does}`)
  }
}
