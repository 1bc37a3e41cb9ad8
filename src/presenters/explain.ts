import { optionOf } from '../core/model/policy.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { whyNot } from '../core/model/verdict.ts'
import { explainRun, explainTarget, type Explanation } from './explanation.ts'
import type { Door } from '../core/recovery/recover.ts'
import type { Settings } from '../app/config.ts'
import type { PolicySetting } from '../app/policy-origin.ts'
import { auditView, evidenceView, ownerView, runView, targetView } from './view.ts'

export type Explained = {
  readonly explained: Explanation
  /** The settings that the verdict hangs on, with where they come from. */
  readonly policy: readonly PolicySetting[]
}

/** Why a run or a target is what it is, by these settings. */
export async function explainEither(
  door: Door,
  settings: Settings,
  found: Run | Target,
): Promise<Explained> {
  const explained = isRun(found)
    ? await explainRun(door, found)
    : (await explainTarget(door, found.id))!
  return { explained, policy: relevant(settings, explained) }
}

function isRun(found: Run | Target): found is Run {
  return 'source' in found
}

function relevant(settings: Settings, { run, target, outlook }: Explanation): PolicySetting[] {
  const names = new Set(outlook.policy.map((field) => optionOf(field)))
  const all = settings.settingsOf(run.source, run).filter(({ name }) => names.has(name))
  const ofGroup = all.filter(({ group }) => group !== null && group === target?.group)
  const said = new Set(ofGroup.map(({ name }) => name))
  return [...all.filter(({ group, name }) => group === null && !said.has(name)), ...ofGroup]
}

/** What `explain` answers. */
export function explanationView({ explained, policy }: Explained) {
  const { run, target, decision, owner, outlook, trail } = explained
  return {
    run: runView(run),
    target: target && targetView(target),
    verdict: {
      action: decision.action,
      because: decision.because,
      cannot: whyNot(run, decision),
    },
    heldBy: owner && ownerView(owner),
    evidence: owner ? evidenceView(owner.evidence) : null,
    policy: [...policy],
    changes: [...outlook.changes],
    trail: trail.map(auditView),
  }
}
