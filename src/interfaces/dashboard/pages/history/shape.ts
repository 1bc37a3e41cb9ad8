import type { InferOutput } from 'valibot'
import type * as answers from '../../../../presenters/schema/results.ts'

/** A part of the trail, and how often what was done. */
export type HistoryAnswer = InferOutput<typeof answers.history>

/** What recovery does. A person may do some of it too. */
const RECOVERIES: readonly string[] = [
  'resume',
  'replan',
  'retry',
  'park',
  'hold',
  'fail',
  'abandon',
]

export function isRecovery({ action }: { readonly action: string }): boolean {
  return RECOVERIES.includes(action)
}
