import type { Run } from '../../../model/run.ts'
import type { Target } from '../../../model/target.ts'
import { explainRun, explainTarget, type Explanation } from '../../../runtime/explain.ts'
import type { Settings } from '../../config.ts'
import type { PolicySetting } from '../../policy-origin.ts'
import { optionOf } from '../../../model/policy.ts'
import { auditView, ownerView, runView, targetView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { printExplanation } from '../explain-text.ts'
import { findEither } from '../find-run.ts'
import { argument } from '../option.ts'

export const explain = defineCommand({
  name: 'explain',
  summary:
    'Why a run or a target is what it is: evidence, policy, verdict, and what would change it.',
  examples: ['unstuck explain 4f2a91bc', "unstuck explain 4f2a91bc --json | jq '.verdict'"],
  args: { what: argument.required('a run or a target: its last 8 digits, or its full id') },

  async run({ args, database, settings }) {
    const store = await database.openExisting()
    const door = await doorOf(store, settings)
    const found = await findEither(store, args.what)
    const explained = isRun(found)
      ? await explainRun(door, found)
      : (await explainTarget(door, found.id))!
    const { preset } = await settings()
    const policy = relevant(await settings(), explained)
    return {
      data: toView(explained, policy),
      text: (paper) => printExplanation(paper, explained, { policy, preset }),
    }
  },
})

function isRun(found: Run | Target): found is Run {
  return 'source' in found
}

/** The settings that the verdict hangs on, with where they come from. */
function relevant(settings: Settings, { run, target, outlook }: Explanation): PolicySetting[] {
  const names = new Set(outlook.policy.map((field) => optionOf(field)))
  const all = settings.settingsOf(run.source, run.policy).filter(({ name }) => names.has(name))
  const ofGroup = all.filter(({ group }) => group !== null && group === target?.group)
  const said = new Set(ofGroup.map(({ name }) => name))
  return [...all.filter(({ group, name }) => group === null && !said.has(name)), ...ofGroup]
}

function toView(explained: Explanation, policy: readonly PolicySetting[]) {
  const { run, target, decision, owner, outlook, trail } = explained
  return {
    run: runView(run),
    target: target && targetView(target),
    verdict: decision,
    heldBy: owner && ownerView(owner),
    evidence: owner?.evidence ?? null,
    policy,
    changes: outlook.changes,
    trail: trail.map(auditView),
  }
}
