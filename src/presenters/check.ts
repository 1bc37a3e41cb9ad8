import type { StartAdvice } from '../core/recovery/advise-start.ts'
import { checkpointView, ownerView, runView } from './view.ts'

/** What `check` answers. */
export function adviceView(source: string, advice: StartAdvice) {
  const { action, because, blockedBy = null, run, target, owner } = advice
  return {
    source,
    action,
    because,
    blockedBy,
    run: run && runView(run),
    checkpoint: target && target.seq > 0 ? checkpointView(target) : null,
    owner: owner && ownerView(owner),
  }
}
