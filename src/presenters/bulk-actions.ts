import type { HealthState } from '../core/decide/health.ts'
import { shortId } from '../core/model/id.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { acknowledgeText } from './acknowledge-text.ts'
import { FROM_PAGE, makeAction, type AllowedAction } from './allowed-actions.ts'
import { plural } from './format.ts'

/** Actions on all that a selection matches. */

/** `selection`: the groups of dead letters; `what`: their number as text. */
export function replanDeadLettersAction(
  selection: { readonly fingerprint?: string | undefined; readonly source?: string | undefined },
  { label, what }: { readonly label: string; readonly what: string },
): AllowedAction {
  const { fingerprint, source } = selection
  const query = new URLSearchParams({ limit: '5', ...(source && { source }) })
  return makeAction(
    'replan-dead-letters',
    {
      label,
      title: `Plan ${what} again`,
      verb: 'Plan again',
      about: `Puts them back in the queue, each ${FROM_PAGE}. Ended runs are opened again.`,
      isCounted: true,
      confirm: { text: 'plan again', always: false },
      call: {
        path: '/api/dead-letters/replan',
        body: { ...(fingerprint && { fingerprint }), ...(source && { source }) },
        sample: fingerprint ? `/api/dead-letters/${fingerprint}/targets?${query.toString()}` : null,
      },
    },
    // The command line has `reset-failed` and `unpark`, run by run.
    '',
  )
}

/** The same dead letters are acknowledged; `isAcknowledged`: they are, and it is undone. */
export function acknowledgeDeadLettersAction(
  selection: { readonly fingerprint?: string | undefined; readonly source?: string | undefined },
  { what, isAcknowledged }: { readonly what: string; readonly isAcknowledged: boolean },
): AllowedAction {
  const { fingerprint, source } = selection
  const path = '/api/dead-letters/acknowledge'
  const body = { ...(fingerprint && { fingerprint }), ...(source && { source }) }
  // The command line goes by runs, targets and sources.
  const command = fingerprint
    ? ''
    : unstuckCommand('acknowledge', [], { all: !source, source, undo: isAcknowledged })
  const text = acknowledgeText(what, path, isAcknowledged, body)
  return makeAction('acknowledge', { ...text, isCounted: true }, command)
}

/** `selection`: as in the request whose preview offers it; `planned`: how many verdicts that has. */
export function recoverAction(
  selection: {
    readonly timeout?: string | undefined
    readonly sources?: readonly string[]
    readonly groups?: readonly string[]
  },
  planned?: number,
): AllowedAction {
  const { timeout, sources = [], groups = [] } = selection
  const query = new URLSearchParams(timeout ? { timeout } : {})
  for (const source of sources) query.append('source', source)
  for (const group of groups) query.append('group', group)
  return makeAction(
    'recover',
    {
      label: planned === undefined ? 'Recover' : `Recover ${planned}`,
      verb: 'Recover',
      title: 'Recover orphaned targets',
      about:
        'Puts targets of dead and silent workers back in the queue, each from its last saved page. Live workers keep theirs.',
      isCounted: true,
      call: {
        path: '/api/recovery',
        body: {
          ...(timeout && { timeout }),
          ...(sources.length > 0 && { sources }),
          ...(groups.length > 0 && { groups }),
        },
        preview: withQuery('/api/recovery', query),
      },
    },
    unstuckCommand('recover', [], { yes: true, timeout, source: sources, group: groups }),
  )
}

export function cleanAction(
  selection: {
    readonly runs?: readonly string[] | undefined
    /** How the command names the runs. */
    readonly names?: readonly string[] | undefined
    readonly age?: string | undefined
  },
  dead?: number,
): AllowedAction {
  const { runs, names = (runs ?? []).map(shortId), age } = selection
  return makeAction(
    'clean',
    {
      label: dead === undefined ? 'Clean' : `Clean ${plural(dead, 'dead run')}`,
      verb: 'Clean',
      title: 'Clean dead runs',
      about:
        'Marks runs that have no worker and no checkpoint as “Timeout – auto-cleaned”, and rows of your own tables with the status mapped for it. Nothing is deleted; each can be reverted.',
      isCounted: true,
      call: {
        path: '/api/clean',
        body: { ...(runs && { runs }), ...(age && { age }) },
        preview: runs ? null : withQuery('/api/clean', new URLSearchParams(age ? { age } : {})),
      },
    },
    unstuckCommand('clean', names, { yes: true, age }),
  )
}

/** Returns the action for stuck runs. A dead run has no worker to recover from: it is cleaned. */
export function unstickAction(states: readonly HealthState[]): AllowedAction {
  const isOnlyDead = states.includes('dead') && !states.includes('orphaned')
  return isOnlyDead ? cleanAction({}) : recoverAction({})
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query.toString()}`
}
