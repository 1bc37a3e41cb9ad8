import type { Advice } from '../core/recovery/advise-start.ts'
import { checkpointView, ownerView, runView } from './view.ts'

/** What `check` answers. */
export function adviceView(source: string, advice: Advice) {
  const { action, because, cannot = null, run, target, owner } = advice
  return {
    source,
    action,
    because,
    cannot,
    run: run && runView(run),
    checkpoint: target && target.seq > 0 ? checkpointView(target) : null,
    heldBy: owner && ownerView(owner),
  }
}
