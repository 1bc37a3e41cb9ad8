import type { RunId } from '../core/model/id.ts'
import type { AcknowledgeResult } from '../features/acknowledge/store/store.ts'
import { firstSentences, plainText } from '../lib/text/sentence.ts'
import { makeResult, NOTHING_CHANGED, type ActionResult } from './action-result.ts'
import type { ActionText } from './allowed-actions.ts'
import { plural } from './format.ts'

/** `acknowledge` in words: how it is offered, and what it has done. */

/** Returns how `acknowledge` is offered, or its undo. `what`: its subject. */
export function acknowledgeText(
  what: string,
  path: string,
  isAcknowledged: boolean,
  body: Record<string, unknown> = {},
): ActionText {
  return isAcknowledged
    ? {
        label: 'Undo acknowledge',
        title: `Undo the acknowledgement of ${what}`,
        about: 'It counts as needing attention again.',
        takesReason: true,
        call: { path, body: { ...body, undo: true } },
      }
    : {
        label: 'Acknowledge',
        title: `Acknowledge ${what}`,
        about:
          'Keeps everything as it is and no longer counts it as needing attention. Anything that starts it again removes the mark. It can be undone.',
        takesReason: true,
        call: { path, body },
      }
}

/** What was changed of a run. */
export type AcknowledgedRun = AcknowledgeResult & {
  readonly run: RunId
  readonly source: string
  /** As commands take it. */
  readonly name: string
}

export type AcknowledgeActionResult = ActionResult & { readonly items: readonly AcknowledgedRun[] }

type Direction = { readonly undo: boolean; readonly dryRun: boolean }

/** Words what was changed, or would be. */
export function presentAcknowledged(
  items: readonly AcknowledgedRun[],
  { run, undo, command }: Pick<ActionResult, 'run' | 'undo' | 'command'>,
  direction: Direction,
): AcknowledgeActionResult {
  const { dryRun } = direction
  const isNothing = items.length === 0
  return makeResult(dryRun, {
    run,
    isOnRun: !isNothing,
    targets: items.reduce((sum, { targets }) => sum + targets, 0),
    items,
    sentences: isNothing ? nothingSentences(direction) : changedSentences(items, direction),
    undo: isNothing ? null : undo,
    command,
  })
}

function nothingSentences({ undo, dryRun }: Direction): string[] {
  const nothing = undo ? 'Nothing of it is acknowledged.' : 'Nothing of it is left to acknowledge.'
  // A dry run adds the second sentence itself.
  return dryRun ? [nothing] : [nothing, NOTHING_CHANGED]
}

function changedSentences(items: readonly AcknowledgedRun[], direction: Direction): string[] {
  const lines = items.map((item) => [describeChange(item, direction)])
  return firstSentences(lines, '`--json` has each run').map(plainText)
}

/** `Run 4f2a91bc of shop, with 3 targets, is acknowledged: kept, and no longer counted as needing attention.` */
function describeChange(
  { name, source, targets, isRunChanged }: AcknowledgedRun,
  { undo, dryRun }: Direction,
): string {
  const some = plural(targets, 'target')
  const withSome = targets > 0 ? `, with ${some},` : ''
  const what = isRunChanged
    ? `Run ${name} of ${source}${withSome}`
    : `${some} of run ${name} of ${source}`
  const isOne = isRunChanged || targets === 1
  if (undo) {
    const count = dryRun ? 'would count' : isOne ? 'counts' : 'count'
    return `${what} ${count} as needing attention again.`
  }
  const be = dryRun ? 'would be' : isOne ? 'is' : 'are'
  return `${what} ${be} acknowledged: kept, and no longer counted as needing attention.`
}
