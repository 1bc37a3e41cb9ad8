import {
  isParkedOrStuck,
  refuseCancel,
  refuseDelete,
  refuseReplan,
  refuseResume,
  refuseRetry,
  refuseRevert,
  refuseRewind,
  type Refusal,
} from '../core/decide/allowed-actions.ts'
import { decideRevert, type RevertFacts } from '../core/decide/revert.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import type { Target } from '../core/model/target.ts'
import {
  describeOrigin,
  RUN_ACTIONS,
  TARGET_ACTIONS,
  type RunAction,
  type TargetAction,
} from '../core/model/traits.ts'
import { otherLiveRun } from '../core/recovery/operator-actions.ts'
import type { Store } from '../core/store/store.ts'

/** An action that is accepted now: all that an interface needs to offer it, preview it and call it. */
export type AllowedAction = {
  name: RunAction | TargetAction | 'recover' | 'clean' | 'retry-dead-letters'
  /** Names it where it is offered. */
  label: string
  /** Names it with its subject. */
  title: string
  /** Names it where it is confirmed. */
  verb: string
  /** What it does, and whether it can be reverted. */
  about: string
  /** It ends something, or cannot be reverted. */
  isDestructive: boolean
  /** It is about any number of things; the interface names the number. */
  isCounted: boolean
  /** A reason is accepted; it goes into the audit trail. */
  takesReason: boolean
  role: 'operator' | 'admin'
  /** Text to type first: always, or only for more than 100 things. */
  confirm: { text: string; always: boolean }
  /** Sent in the body by their names. */
  fields: { name: string; label: string; initial: number | boolean; max: number | null }[]
  call: {
    method: 'POST' | 'DELETE'
    path: string
    body: Record<string, unknown>
    /** Path of the preview; null: the same call with `dryRun`. */
    preview: string | null
    /** Path of a list of targets it is about, where the preview has only their number. */
    sample: string | null
  }
  command: string
}

type ActionText = Pick<AllowedAction, 'label' | 'title' | 'about'> & {
  call: Pick<AllowedAction['call'], 'path'> & Partial<AllowedAction['call']>
} & Partial<Omit<AllowedAction, 'call'>>

export function makeAction(
  name: AllowedAction['name'],
  { call, ...text }: ActionText,
  command: string,
): AllowedAction {
  return {
    name,
    verb: text.label,
    isDestructive: false,
    isCounted: false,
    takesReason: false,
    role: 'operator',
    confirm: { text: name, always: false },
    fields: [],
    ...text,
    call: { method: 'POST', body: {}, preview: null, sample: null, ...call },
    command,
  }
}

const OWN_PROGRAM_WORKS = 'A program of yours that works on it is not stopped. It can be reverted.'
export const FROM_PAGE = 'from its last saved page'

type RunFacts = RevertFacts & {
  /** A live run that `clean` would mark. Only such a run, or an ended one, can be deleted. */
  readonly isDead: boolean
}

/** Lists what can be done to a run. The refusals are those of the actions: what is listed is accepted. */
function allowedRunActions(facts: RunFacts): RunAction[] {
  return RUN_ACTIONS.filter(
    (action) => changesRun(action, facts.run) && refuseRunAction(action, facts) === null,
  )
}

/** False: the action is accepted but makes no difference, or another action fits better. */
function changesRun(action: RunAction, run: Run): boolean {
  const { failed, stuck, parked } = run.counts.targets
  const canContinue = !isLive(run.status) && run.status !== 'succeeded'
  switch (action) {
    case 'resume':
    case 'retry':
      return canContinue
    case 'reset-failed':
      return failed > 0 && run.traits.hasTargets
    case 'unpark':
      return parked + stuck > 0 && run.traits.hasTargets
    case 'delete':
      return !isLive(run.status)
    case 'revert':
    case 'cancel':
      return true
  }
}

function refuseRunAction(action: RunAction, facts: RunFacts): Refusal {
  const { run, otherLive } = facts
  switch (action) {
    case 'cancel':
      return refuseCancel(run)
    case 'resume':
      return refuseReplan(run, otherLive) ?? refuseResume(run)
    case 'reset-failed':
    case 'unpark':
      return refuseReplan(run, otherLive)
    case 'retry':
      return refuseRetry(run, otherLive)
    case 'revert': {
      const decision = decideRevert(facts)
      return decision.action === 'refuse' ? refuseRevert(run, decision) : null
    }
    case 'delete':
      return refuseDelete(run, facts.isDead)
  }
}

/** Returns the actions that a run accepts now. */
export function runActions(facts: RunFacts): AllowedAction[] {
  const { run } = facts
  return allowedRunActions(facts).map((name) => {
    const text = runActionText(name, run)
    return makeAction(
      name,
      { confirm: { text: run.source, always: false }, ...text },
      runCommand(name, run),
    )
  })
}

function runActionText(name: RunAction, run: Run): ActionText {
  const { id, source } = run
  const { origin } = run.traits
  const what = origin ? describeOrigin(origin) : `the run of ${source}`
  const call = { path: `/api/runs/${id}/${name}` }
  const queuesTargets = origin
    ? `go back in the queue, with the status that ${origin.table} has for it. Your own program continues them.`
    : `go back in the queue, each ${FROM_PAGE}.`
  switch (name) {
    case 'cancel':
      return {
        label: 'Cancel',
        title: `Cancel ${what}`,
        verb: origin ? 'Cancel it' : 'Cancel the run',
        about: origin
          ? `Writes the status that ${origin.table} has for cancelled, if the row is unchanged. ${OWN_PROGRAM_WORKS}`
          : 'Its workers stop after their current page. Saved data stays. It can be reverted.',
        isDestructive: true,
        takesReason: true,
        call,
      }
    case 'resume':
      return {
        label: 'Resume',
        title: `Resume ${what}`,
        about: origin
          ? `Writes the status that ${origin.table} has for queued. Your own program continues it.`
          : 'Opens the run again: targets that are not done continue from their last saved pages.',
        takesReason: true,
        call,
      }
    case 'retry':
      return {
        label: 'Retry from the start',
        title: `Retry ${what} from the start`,
        verb: 'Retry',
        about: 'Queues a new run that starts from the beginning. Saved items stay.',
        takesReason: true,
        call,
      }
    case 'revert':
      return {
        label: 'Revert',
        title: `Revert the last action on ${what}`,
        about: 'Reverts the last action in its audit trail.',
        takesReason: true,
        call,
      }
    case 'reset-failed':
      return {
        label: 'Reset failed',
        title: `Reset the failed targets of ${source}`,
        verb: 'Reset',
        about: `Failed targets ${queuesTargets}`,
        isCounted: true,
        call: { ...call, sample: `/api/runs/${id}/targets?status=failed&limit=5` },
      }
    case 'unpark':
      return {
        label: 'Unpark',
        title: `Unpark targets of ${source}`,
        about: `Parked and stuck targets ${queuesTargets}`,
        isCounted: true,
        call: { ...call, sample: `/api/runs/${id}/targets?status=parked&status=stuck&limit=5` },
      }
    case 'delete': {
      const confirm = `delete ${shortId(id)}`
      return {
        label: 'Delete',
        title: `Delete ${what}`,
        verb: 'Delete',
        about: 'Deletes the run, its targets and its files. This cannot be reverted.',
        isDestructive: true,
        role: 'admin',
        confirm: { text: confirm, always: true },
        fields: [
          {
            name: 'withItems',
            label: 'Also delete the items that no other run has saved',
            initial: false,
            max: null,
          },
        ],
        call: { method: 'DELETE', path: `/api/runs/${id}`, body: { confirm } },
      }
    }
  }
}

function runCommand(name: RunAction, { id }: Run): string {
  const short = shortId(id)
  if (name === 'unpark') return unstuckCommand(name, [], { run: short })
  if (name === 'delete') return unstuckCommand('clean', [short], { delete: true })
  return unstuckCommand(name, [short])
}

/** Lists what can be done to a target. */
function allowedTargetActions(target: Target, run: Run, otherLive: Run | null): TargetAction[] {
  return TARGET_ACTIONS.filter((action) => {
    switch (action) {
      case 'reset':
        return target.status === 'failed' && refuseReplan(run, otherLive) === null
      case 'unpark':
        return isParkedOrStuck(target) && refuseReplan(run, otherLive) === null
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
    makeAction(name, targetActionText(name, target, run), targetCommand(name, target)),
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

function targetActionText(name: TargetAction, { id, key, page }: Target, run: Run): ActionText {
  const { origin } = run.traits
  const call = { path: `/api/targets/${id}/${name}` }
  const queued = origin
    ? `Writes the status that ${origin.table} has for queued. Your own program continues it.`
    : `Puts it back in the queue, ${FROM_PAGE}.`
  switch (name) {
    case 'reset':
      return { label: 'Reset', title: `Reset ${key}`, about: queued, call }
    case 'unpark':
      return { label: 'Unpark', title: `Unpark ${key}`, about: queued, call }
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
    case 'rewind':
      return {
        label: 'Rewind',
        title: `Rewind ${key}`,
        about:
          'Continues after an earlier page and fetches the later ones again. Items are not duplicated.',
        fields: [
          { name: 'to', label: 'Continue after page', initial: Math.max(0, page - 1), max: page },
        ],
        call,
      }
  }
}

function targetCommand(name: TargetAction, { id, run, page }: Target): string {
  const short = shortId(id)
  if (name === 'reset')
    return unstuckCommand('reset-failed', [shortId(run)], { yes: true, target: [short] })
  return unstuckCommand(name, [short], name === 'rewind' ? { to: Math.max(0, page - 1) } : {})
}
