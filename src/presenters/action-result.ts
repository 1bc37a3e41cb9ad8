import type { Run } from '../core/model/run.ts'
import { runView } from './view.ts'
import type { Undo } from './results.ts'

/** What an operator action on one run, or on targets, changed or would change. */
export type ActionResult = {
  /** As it is now; null for targets of several runs. */
  readonly run: Run | null
  readonly targets: number
  /** The action is on the run itself: it changes one thing even if it has no target. */
  readonly isOnRun?: boolean
  readonly sentences: readonly string[]
  readonly dryRun: boolean
  /** Null: nothing was changed, or it cannot be reverted. */
  readonly undo: Undo | null
  /** The same on the command line. */
  readonly command: string
}

export const NOTHING_CHANGED = 'Nothing was changed.'

export function actionResultView(result: ActionResult) {
  const { run, targets, isOnRun = false, sentences, dryRun, undo, command } = result
  return {
    run: run && runView(run),
    targets,
    count: isOnRun ? Math.max(1, targets) : targets,
    sections: [{ heading: null, sentences: [...sentences] }],
    dryRun,
    undo,
    command,
  }
}
