import {
  refuseAcknowledge,
  refuseCancel,
  refuseDelete,
  refuseMove,
  refuseReplan,
  refuseResume,
  refuseRetry,
  refuseRevert,
  type Refusal,
} from '../operator/refusals.ts'
import { decideRevert, type RevertFacts } from '../operator/revert.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import {
  describeOrigin,
  RUN_ACTIONS,
  type RunAction,
  type TargetAction,
  runName,
} from '../core/model/traits.ts'
import { NO_UNDO, ROW_DELETION } from './action-result.ts'
import { acknowledgeText } from './acknowledge-text.ts'
import { countDeadLettersOf } from './acknowledged.ts'

/** An action that is accepted now: all that an interface needs to offer it, preview it and call it. */
export type AllowedAction = {
  name:
    | RunAction
    | TargetAction
    | 'recover'
    | 'clean'
    | 'replan-dead-letters'
    | 'enqueue'
    | 'pause'
    | 'unpause'
    | 'run-now'
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

export type ActionText = Pick<AllowedAction, 'label' | 'title' | 'about'> & {
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

export const OWN_PROGRAM_WORKS =
  'A program of yours that works on it is not stopped. It can be reverted.'
const ROW_IN_PROGRESS = `A program of yours that works on it is not stopped. ${NO_UNDO}`
export const FROM_PAGE = 'from its last saved page'

type RunFacts = RevertFacts & {
  /** A live run that `clean` would mark. Only such a run, or an ended one, can be deleted. */
  readonly isDead: boolean
  /** How many of its targets are acknowledged. */
  readonly acknowledged: number
  /** A live run that needs attention, or would if it was not acknowledged. */
  readonly isStuck: boolean
}

/** Lists what can be done to a run. The refusals are those of the actions: what is listed is accepted. */
function allowedRunActions(facts: RunFacts): RunAction[] {
  return RUN_ACTIONS.filter(
    (action) => changesRun(action, facts) && refuseRunAction(action, facts) === null,
  )
}

/** False: the action is accepted but makes no difference, or another action fits better. */
function changesRun(action: RunAction, { run, isStuck }: RunFacts): boolean {
  const { failed, stuck, parked } = run.counts.targets
  const canContinue = !isLive(run.status) && run.status !== 'succeeded'
  switch (action) {
    case 'resume':
      return canContinue || isMovable(run, isStuck)
    case 'retry':
      return canContinue && !(run.traits.origin && isStuck)
    case 'fail':
      return isStuck
    case 'reset-failed':
      return failed > 0 && run.traits.hasTargets
    case 'unpark':
      return parked + stuck > 0 && run.traits.hasTargets
    case 'delete':
      return !isLive(run.status)
    case 'acknowledge':
    case 'revert':
    case 'cancel':
      return true
  }
}

/** A row in progress that is stuck goes back in the queue. */
function isMovable(run: Run, isStuck: boolean): boolean {
  return isStuck && run.status === 'running' && run.traits.origin !== null && run.kind === 'single'
}

function refuseRunAction(action: RunAction, facts: RunFacts): Refusal {
  const { run, otherLive, isStuck } = facts
  switch (action) {
    case 'cancel':
      return refuseCancel(run)
    case 'resume':
      if (isLive(run.status)) return refuseMove(run, 'resume', isStuck)
      return refuseReplan(run, otherLive) ?? refuseResume(run)
    case 'fail':
      return refuseMove(run, 'fail')
    case 'reset-failed':
    case 'unpark':
      return refuseReplan(run, otherLive)
    case 'retry':
      return refuseRetry(run, otherLive)
    case 'revert': {
      const decision = decideRevert(facts)
      return decision.action === 'refuse' ? refuseRevert(run, decision) : null
    }
    case 'acknowledge':
      return refuseAcknowledge(run, isStuck && run.traits.origin !== null)
    case 'delete':
      return refuseDelete(run, facts.isDead)
  }
}

/** Returns the actions that a run accepts now. */
export function runActions(facts: RunFacts): AllowedAction[] {
  return toActions(allowedRunActions(facts), facts.run, isAllAcknowledged(facts))
}

/** Returns what moves a stuck row of a table of your own, or marks it as seen. */
export function waysOut(run: Run): AllowedAction[] {
  const facts = { run, isStuck: true, trail: [], targets: [], otherLive: null }
  const names = (['resume', 'fail', 'cancel', 'acknowledge'] as const).filter((name) =>
    allowedRunActions({ ...facts, isDead: false, acknowledged: 0 }).includes(name),
  )
  return toActions(names, run, run.acknowledgedAt !== null)
}

function toActions(
  names: readonly RunAction[],
  run: Run,
  isAcknowledged: boolean,
): AllowedAction[] {
  return names.map((name) => {
    const text = runActionText(name, run, isAcknowledged)
    return makeAction(
      name,
      { confirm: { text: run.source, always: false }, ...text },
      actionCommand(name, run, isAcknowledged),
    )
  })
}

/** Nothing of it is left to acknowledge. */
function isAllAcknowledged({ run, acknowledged }: RunFacts): boolean {
  if (isLive(run.status) && run.acknowledgedAt !== null) return true
  const all = run.traits.hasTargets ? countDeadLettersOf(run) : 0
  return all > 0 ? acknowledged >= all : run.acknowledgedAt !== null
}

function runActionText(name: RunAction, run: Run, isAcknowledged: boolean): ActionText {
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
          : run.status === 'running'
            ? 'Its workers stop after their current page. Saved data stays. It can be reverted.'
            : 'No worker takes it up. Saved data stays. It can be reverted.',
        isDestructive: true,
        takesReason: true,
        call,
      }
    case 'resume':
      return {
        label: 'Resume',
        title: `Resume ${what}`,
        about: !origin
          ? 'Opens the run again: targets that are not done continue from their last saved pages.'
          : `Writes the status that ${origin.table} has for queued; your own program continues it. ${isLive(run.status) ? ROW_IN_PROGRESS : NO_UNDO}`,
        takesReason: true,
        call,
      }
    case 'fail':
      return {
        label: 'Fail',
        title: `Fail ${what}`,
        verb: 'Fail it',
        about: `Writes the status that ${origin?.table} has for failed, with the reason, if the row is unchanged. ${OWN_PROGRAM_WORKS}`,
        isDestructive: true,
        takesReason: true,
        call,
      }
    case 'retry':
      return {
        label: 'Retry from the start',
        title: `Retry ${what} from the start`,
        verb: 'Retry',
        about: origin
          ? `Writes the status that ${origin.table} has for queued, without end and error; your own program starts it. ${NO_UNDO}`
          : 'Queues a new run that starts from the beginning. Saved items stay.',
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
    case 'acknowledge':
      return acknowledgeText(what, call.path, isAcknowledged)
    case 'reset-failed':
      return {
        label: 'Reset failed',
        title: `Reset the failed targets of ${source}`,
        verb: 'Reset',
        about: `Failed targets ${queuesTargets} This cannot be reverted.`,
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
      const confirm = `delete ${runName(run)}`
      return {
        label: 'Delete',
        title: `Delete ${what}`,
        verb: 'Delete',
        about: origin
          ? `Deletes the row from your table ${origin.table}, if it is unchanged. ${ROW_DELETION} This cannot be undone.`
          : 'Deletes the run, its targets and its files.',
        isDestructive: true,
        role: 'admin',
        confirm: { text: confirm, always: true },
        fields: origin
          ? []
          : [
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

function actionCommand(name: RunAction, run: Run, isAcknowledged: boolean): string {
  const short = runName(run)
  if (name === 'acknowledge') return unstuckCommand(name, [short], { undo: isAcknowledged })
  if (name === 'unpark') return unstuckCommand(name, [], { run: short })
  if (name === 'delete') return unstuckCommand('clean', [short], { delete: true })
  return unstuckCommand(name, [short])
}

/** Returns a command and what it does, in a sentence. */
export function describeStep({ command, about }: AllowedAction): string {
  return `\`${command}\`: ${about.charAt(0).toLowerCase()}${about.slice(1)}`
}
