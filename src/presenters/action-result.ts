import type { Run } from '../core/model/run.ts'
import { runView } from './view.ts'
import type { Undo } from './undo.ts'

/** What became of something that a person asked to be done to one run, or to targets. */
export type ActionResult = {
  /** As it is now; null when it is about targets of several. */
  readonly run: Run | null
  /** How many it was about. */
  readonly targets: number
  /** In sentences. */
  readonly sentences: readonly string[]
  readonly dryRun: boolean
  /** Null: nothing was changed, or nothing would make it as it was. */
  readonly undo: Undo | null
  /** The same on the command line. */
  readonly command: string
}

export const NOTHING_CHANGED = 'Nothing was changed.'

export function actionResultView({ run, targets, sentences, dryRun, undo, command }: ActionResult) {
  return {
    run: run && runView(run),
    targets,
    sections: [{ heading: null, sentences: [...sentences] }],
    dryRun,
    undo,
    command,
  }
}
