import { optionNameOf } from '../core/model/policy.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { blockedReason } from '../core/model/verdict.ts'
import { explainRun, explainTarget, type Explanation } from './explanation.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import type { PolicySetting, SourcePolicies } from './policy-origin.ts'
import { auditView, evidenceView, ownerView, runView, targetView } from './view.ts'

export type ExplanationWithPolicy = {
  readonly explanation: Explanation
  /** The settings that the verdict hangs on, with where they come from. */
  readonly policy: readonly PolicySetting[]
}

/** Why a run or a target is what it is, by these settings. */
export async function explainRunOrTarget(
  context: OperatorContext,
  settings: SourcePolicies,
  runOrTarget: Run | Target,
): Promise<ExplanationWithPolicy> {
  const explanation = isRun(runOrTarget)
    ? await explainRun(context, runOrTarget)
    : (await explainTarget(context, runOrTarget.id))!
  return { explanation, policy: relevantSettings(settings, explanation) }
}

function isRun(found: Run | Target): found is Run {
  return 'source' in found
}

function relevantSettings(
  settings: SourcePolicies,
  { run, target, outlook }: Explanation,
): PolicySetting[] {
  const names = new Set(outlook.policy.map((field) => optionNameOf(field)))
  const all = settings.settingsOf(run.source, run).filter(({ name }) => names.has(name))
  const ofGroup = all.filter(({ group }) => group !== null && group === target?.group)
  const configured = new Set(ofGroup.map(({ name }) => name))
  return [...all.filter(({ group, name }) => group === null && !configured.has(name)), ...ofGroup]
}

/** What `explain` answers. */
export function explanationView({ explanation, policy }: ExplanationWithPolicy) {
  const { run, target, decision, owner, outlook, trail } = explanation
  return {
    run: runView(run),
    target: target && targetView(target),
    verdict: {
      action: decision.action,
      because: decision.because,
      blockedBy: blockedReason(run, decision),
    },
    owner: owner && ownerView(owner),
    evidence: owner ? evidenceView(owner.evidence) : null,
    policy: [...policy],
    changes: [...outlook.changes],
    trail: trail.map(auditView),
  }
}
