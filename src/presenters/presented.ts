import type { Severity } from '../core/decide/health.ts'
import { plainText, type Section } from '../lib/text/sentence.ts'
import type { AllowedAction } from './allowed-actions.ts'
import type { Undo } from './results.ts'

/** One answer, computed once. Every interface renders it and derives nothing itself. */
export type Presented<View extends object> = {
  /** The data of `--json` and HTTP. */
  readonly view: View
  readonly severity: Severity
  /** One line. */
  readonly summary: string
  readonly sections: readonly Section[]
  /** What can be done now; an action that is not listed is refused. */
  readonly actions?: readonly AllowedAction[]
  readonly undo?: Undo | null
  /** Asked before what a preview shows is applied; null if there is nothing to apply. */
  readonly question?: string | null
}

/** A list has no severity and no summary: `--json` and HTTP send its view, a page of items. */
export type PresentedList<Item> = {
  readonly view: { readonly items: Item[]; readonly next: string | null }
  readonly sections: readonly Section[]
}

/** What `--json` prints and HTTP sends. Tables are for terminals and stay out: the view has their data. */
export function toJson<View extends object>(presented: Presented<View>) {
  const { view, severity, summary, sections, actions = [], undo = null } = presented
  return {
    ...view,
    severity,
    summary,
    sections: sections
      .map(({ heading, sentences }) => ({ heading, sentences: sentences.map(plainText) }))
      .filter(({ sentences }) => sentences.length > 0),
    actions: [...actions],
    undo,
  }
}
