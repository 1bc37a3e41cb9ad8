import type { Section, Sentence } from '../../lib/text/sentence.ts'

const NAVIGATION_KEYS: readonly [string, string][] = [
  ['1 – 5, Tab', 'runs, workers, recovery, dead letters, history'],
  ['↑ ↓, j k', 'move; PgUp PgDn by a page, Home End to the ends'],
  ['Enter', 'open the selected row; Esc closes it'],
  ['/', 'filter: every word must occur in a row; Enter keeps the filter, Esc drops it'],
  ['s', 'next order; the first line shows which one'],
  ['q, Ctrl-C', 'quit; Ctrl-Z suspends, `fg` continues'],
]

const ACTION_KEYS: readonly [string, string][] = [
  ['R', 'recover what dead and silent workers held, as `unstuck recover`'],
  ['C', 'mark dead runs as “Timeout – auto-cleaned”, as `unstuck clean`'],
  ['c', 'cancel the selected run, as `unstuck cancel`'],
  ['r', 'on a dead letter: put its targets back in line, from their last saved pages'],
  ['u', 'revert the last action of this screen, else of the selected run, as `unstuck revert`'],
]

export const READ_ONLY = 'This screen is read-only: start it without --readonly to act.'

export function helpSections(readonly: boolean, where: string | null): Section[] {
  return [
    { heading: 'Navigate', sentences: NAVIGATION_KEYS.map(keySentence) },
    {
      heading: 'Act',
      sentences: readonly
        ? [[READ_ONLY]]
        : [...ACTION_KEYS.map(keySentence), ['Each shows a preview, and applies it only after y.']],
    },
    ...(where === null
      ? []
      : [
          {
            heading: null,
            sentences: [[{ text: `The database is ${where}.`, style: 'dim' as const }]],
          },
        ]),
  ]
}

function keySentence([key, meaning]: readonly [string, string]): Sentence {
  return ['- ', { text: key, style: 'strong' }, `: ${meaning}`]
}
