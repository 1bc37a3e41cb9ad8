import type {
  ActionResponse,
  AllowedAction,
  AssessedRun,
  Cleaning,
  DeadLetterRetry,
  Deletion,
  Recovery,
  Undo,
  Verdict,
} from '../shapes.ts'
import { plural, shortId } from '../model/format.ts'

/** One change that an action would make, or made. */
export type ActionChange = {
  readonly id: string
  readonly action: string
  /** `target 91bc4f2a of shop` */
  readonly what: string
  /** The page of its subject. */
  readonly page: string | null
  /** Statuses; equal, or null, where none changes. */
  readonly from: string | null
  readonly to: string | null
  readonly because: string
  readonly evidence: readonly string[]
  readonly outcome: Verdict['outcome']
}

/** What an action would do (`isDone` false) or did. */
export type ActionResult = {
  readonly isDone: boolean
  /** Sent with the confirmed action, which is refused if it would now do something else. */
  readonly plan: string | null
  /** How many changes; exact, also where only some are listed. */
  readonly count: number
  readonly summary: string
  /** The first ones; `omitted` has the number of the others. */
  readonly changes: readonly ActionChange[]
  /** The first of those that need an operator. */
  readonly needsAttention: readonly ActionChange[]
  readonly omitted: { readonly changes: number; readonly needsAttention: number }
  /** The same on the command line; empty if there is none. */
  readonly command: string
  readonly undo: Undo | null
}

/** The answer to a call of an action, whichever it is. */
export function resultOf({ name }: Pick<AllowedAction, 'name'>, answer: unknown): ActionResult {
  switch (name) {
    case 'recover':
      return resultOfRecovery(answer as Recovery)
    case 'clean':
      return resultOfCleaning(answer as Cleaning)
    case 'delete':
      return resultOfDeletion(answer as Deletion)
    case 'retry-dead-letters':
      return resultOfDeadLetterRetry(answer as DeadLetterRetry)
    default:
      return resultOfAction(answer as ActionResponse)
  }
}

const NONE_OMITTED = { changes: 0, needsAttention: 0 }

export function resultOfRecovery(response: Recovery): ActionResult {
  const { verdicts, dryRun, planned, applied, plan, summary, command, undo } = response
  // Verdicts that recovery applies by itself come first.
  const [changes, attention] = [verdicts.slice(0, planned), verdicts.slice(planned)]
  return {
    isDone: !dryRun,
    plan,
    count: dryRun ? planned : applied,
    summary,
    changes: changes.map(changeOfVerdict),
    needsAttention: attention.map(changeOfVerdict),
    omitted: {
      changes: planned - changes.length,
      needsAttention: response.total - planned - attention.length,
    },
    command,
    undo,
  }
}

export function resultOfCleaning(response: Cleaning): ActionResult {
  const { dead, resumable, cleaned, dryRun, plan, summary, command, undo } = response
  const applied = cleaned.filter(({ outcome }) => outcome === 'applied').length
  return {
    isDone: !dryRun,
    plan,
    count: dryRun ? dead.length : applied,
    summary,
    changes: dryRun ? dead.map(changeOfDeadRun) : cleaned.map(changeOfVerdict),
    needsAttention: dryRun ? resumable.map(changeOfKeptRun) : [],
    omitted: NONE_OMITTED,
    command,
    undo,
  }
}

/** An action on one run, or on targets of it. */
export function resultOfAction(response: ActionResponse): ActionResult {
  const { count, sections, dryRun, undo, command } = response
  const summary = sections.flatMap(({ sentences }) => sentences).join(' ')
  return {
    isDone: !dryRun,
    plan: null,
    count,
    // The dialog shows that this is a preview.
    summary: dryRun ? summary.replace(/\s*Nothing was changed\./, '') : summary,
    changes: [],
    needsAttention: [],
    omitted: NONE_OMITTED,
    command,
    undo,
  }
}

export function resultOfDeletion(response: Deletion): ActionResult {
  const { run, source, targets, items, failures, dryRun, command } = response
  const what = `Run ${shortId(run)} of ${source} with ${plural(targets, 'target')} and ${plural(items, 'item')}`
  return {
    isDone: !dryRun,
    plan: null,
    count: 1,
    summary: dryRun
      ? `${what} would be deleted for good.`
      : [`${what} is deleted.`, ...failures].join(' '),
    changes: [],
    needsAttention: [],
    omitted: NONE_OMITTED,
    command,
    undo: null,
  }
}

export function resultOfDeadLetterRetry(response: DeadLetterRetry): ActionResult {
  const { targets, left, runs, dryRun, plan, undo } = response
  const refused = runs.filter((one) => one.refused !== null).length
  const where = `in ${plural(runs.length - refused, 'run')}`
  const more =
    left > 0
      ? ` ${plural(left, 'more target')} ${left === 1 ? 'is' : 'are'} left for another time.`
      : ''
  return {
    isDone: !dryRun,
    plan,
    count: targets,
    summary: dryRun
      ? `${plural(targets, 'target')} ${where} would be put back in line, each from its last saved page.${more}`
      : `${plural(targets, 'target')} ${where} ${targets === 1 ? 'is' : 'are'} back in line.${refused > 0 ? ` ${plural(refused, 'run')} refused.` : ''}${more}`,
    changes: runs.map((one) => ({
      id: one.run,
      action: 'retry',
      what: `${plural(one.targets, 'target')} of run ${shortId(one.run)}`,
      page: `/runs/${one.run}`,
      from: null,
      to: null,
      because: one.refused ?? '',
      evidence: [],
      outcome: one.refused !== null ? 'changed-meanwhile' : dryRun ? 'planned' : 'applied',
    })),
    needsAttention: [],
    omitted: NONE_OMITTED,
    // The command line retries run by run.
    command: '',
    undo,
  }
}

/** How the current preview differs from the confirmed one. */
export function describeDifference(shown: ActionResult, now: ActionResult): string {
  const before = new Map(shown.changes.map((deed) => [deed.id, deed]))
  const after = new Map(now.changes.map((deed) => [deed.id, deed]))
  const added = now.changes.filter(({ id }) => !before.has(id)).length
  const gone = shown.changes.filter(({ id }) => !after.has(id)).length
  const other = now.changes.filter(({ id, action, from, to }) => {
    const old = before.get(id)
    return old && (old.action !== action || old.from !== from || old.to !== to)
  }).length
  const said = [
    added > 0 ? `${added} came in` : null,
    gone > 0 ? `${gone} no longer ${gone === 1 ? 'needs' : 'need'} it` : null,
    other > 0 ? `${other} would now get another verdict` : null,
  ].filter((one) => one !== null)
  const isWhole = shown.omitted.changes === 0 && now.omitted.changes === 0
  if (isWhole && said.length > 0) return `${said.join(', ')}.`
  return shown.count === now.count
    ? 'Something about it changed.'
    : `It was about ${shown.count}, and is about ${now.count} now.`
}

function changeOfVerdict(verdict: Verdict): ActionChange {
  const { run, target, action, because, evidence, from, to, outcome, blockedBy, subject } = verdict
  return {
    id: target ?? run,
    action,
    what: subject.label,
    page: subject.kind === 'target' ? `/targets/${target}` : `/runs/${run}`,
    ...(subject.kind === 'row' ? NO_MOVE : { from, to }),
    because: withBlockedBy(because, blockedBy),
    evidence,
    outcome,
  }
}

/** A row gets a status of its own table. */
const NO_MOVE = { from: null, to: null }

function changeOfDeadRun(run: AssessedRun): ActionChange {
  return { ...changeOfKeptRun(run), action: 'abandon', ...(!run.adopted && { to: 'abandoned' }) }
}

function changeOfKeptRun(run: AssessedRun): ActionChange {
  const { id, action, status, because, blockedBy, evidence, subject } = run
  return {
    id,
    action,
    because: withBlockedBy(because, blockedBy),
    evidence,
    what: subject.label,
    page: `/runs/${id}`,
    from: status,
    to: status,
    outcome: 'planned',
  }
}

function withBlockedBy(because: string, blockedBy: string | null): string {
  return blockedBy === null ? because : `${because}. ${blockedBy}`
}
