import {
  isParkedOrStuck,
  refuseAcknowledgeTarget,
  refuseReplan,
  refuseRewind,
} from '../operator/refusals.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { TARGET_ACTIONS, type TargetAction } from '../core/model/traits.ts'
import { otherLiveRun } from '../operator/actions.ts'
import type { Store } from '../core/store/store.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { acknowledgeText } from './acknowledge-text.ts'
import { targetRef } from './format.ts'
import {
  FROM_PAGE,
  makeAction,
  OWN_PROGRAM_WORKS,
  type ActionText,
  type AllowedAction,
} from './allowed-actions.ts'

/** Lists what can be done to a target. */
function allowedTargetActions(target: Target, run: Run, otherLive: Run | null): TargetAction[] {
  return TARGET_ACTIONS.filter((action) => {
    switch (action) {
      case 'reset':
        return target.status === 'failed' && refuseReplan(run, otherLive) === null
      case 'unpark':
        return isParkedOrStuck(target) && refuseReplan(run, otherLive) === null
      case 'acknowledge':
        return refuseAcknowledgeTarget(target, run) === null
      case 'park':
        return (
          ['planned', 'in_progress', 'failed'].includes(target.status) &&
          run.traits.actions.includes('park')
        )
      case 'rewind':
        return target.page > 0 && refuseRewind(target, run, otherLive, { to: 0 }) === null
    }
  })
}

/** Returns the actions that a target accepts now. `otherLive`: another live run of its source. */
function targetActions(target: Target, run: Run, otherLive: Run | null): AllowedAction[] {
  return allowedTargetActions(target, run, otherLive).map((name) =>
    makeAction(name, targetActionText(name, target, run), targetCommand(name, target, run)),
  )
}

/** Returns the actions that each of these targets accepts. Reads each of their runs once. */
export async function actionsOfTargets(
  store: Store,
  targets: readonly Target[],
): Promise<AllowedAction[][]> {
  const runs = new Map<RunId, { run: Run; otherLive: Run | null } | null>()
  for (const id of new Set(targets.map((target) => target.run))) {
    const run = await store.run(id)
    runs.set(id, run && { run, otherLive: await otherLiveRun(store, run) })
  }
  return targets.map((target) => {
    const owner = runs.get(target.run)
    return owner ? targetActions(target, owner.run, owner.otherLive) : []
  })
}

function targetActionText(
  name: TargetAction,
  { id, key, page, acknowledgedAt }: Target,
  run: Run,
): ActionText {
  const { origin } = run.traits
  const call = { path: `/api/targets/${id}/${name}` }
  const queued = origin
    ? `Writes the status that ${origin.table} has for queued. Your own program continues it.`
    : `Puts it back in the queue, ${FROM_PAGE}.`
  switch (name) {
    case 'reset':
      return {
        label: 'Reset',
        title: `Reset ${key}`,
        about: `${queued} This cannot be reverted.`,
        call,
      }
    case 'unpark':
      return { label: 'Unpark', title: `Unpark ${key}`, about: queued, call }
    case 'acknowledge':
      return acknowledgeText(key, '/api/acknowledge', acknowledgedAt !== null, { targets: [id] })
    case 'park':
      return {
        label: 'Park',
        title: `Park ${key}`,
        about: origin
          ? `Writes the status that ${origin.table} has for parked. ${OWN_PROGRAM_WORKS}`
          : 'No worker claims it until it is unparked. It can be reverted.',
        isCounted: true,
        takesReason: true,
        call: { path: '/api/targets/park', body: { targets: [id] } },
      }
    case 'rewind': {
      const what = { label: 'Rewind', title: `Rewind ${key}` }
      const cost = 'Items are not duplicated. This cannot be reverted.'
      // A crawl goes by addresses, and only the first one is stored.
      if (run.kind === 'crawl')
        return {
          ...what,
          about: `Fetches its pages again from the first one. ${cost}`,
          call: { ...call, body: { to: 0 } },
        }
      return {
        ...what,
        about: `Continues after an earlier page and fetches the later ones again. ${cost}`,
        fields: [{ name: 'to', label: 'Continue after page', initial: page - 1, max: page }],
        call,
      }
    }
  }
}

function targetCommand(name: TargetAction, target: Target, run: Run): string {
  const { page, acknowledgedAt } = target
  const short = targetRef(target)
  if (name === 'acknowledge')
    return unstuckCommand(name, [short], { undo: acknowledgedAt !== null })
  if (name === 'reset')
    return unstuckCommand('reset-failed', [shortId(run.id)], { target: [short] })
  return unstuckCommand(
    name,
    [short],
    name === 'rewind' ? { to: run.kind === 'crawl' ? 0 : page - 1 } : {},
  )
}
