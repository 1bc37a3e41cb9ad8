import type { Advice } from '../../runtime/pre-start.ts'
import { checkpointView, ownerView, runView } from '../view.ts'

/** What `check` answers. */
export function adviceView(source: string, { action, because, run, target, owner }: Advice) {
  return {
    source,
    action,
    because,
    run: run && runView(run),
    checkpoint: target && target.seq > 0 ? checkpointView(target) : null,
    heldBy: owner && ownerView(owner),
  }
}
