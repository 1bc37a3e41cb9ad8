import { runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import type { Listing } from '../core/store/store.ts'
import { flex, left, makeTable, right, type Table } from '../lib/text/sentence.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { formatTargetStatus, formatRunId } from './format.ts'
import type { PresentedList } from './presented.ts'
import type { Target as TargetView } from './records.ts'
import { targetView } from './view.ts'

/** `targets`. */
export function presentTargets(
  run: Run,
  { items: targets, next }: Listing<Target>,
): PresentedList<TargetView> {
  const id = runName(run)
  const title = `Run ${id} of ${run.source}`
  const more = `There are more: add \`--after ${next}\`, or a higher \`--limit\`.`
  return {
    view: { items: targets.map(targetView), next },
    sections: [
      targets.length === 0
        ? {
            heading: null,
            sentences: [
              [
                `${title}: no such targets. How many there are: \`${unstuckCommand('show', [id])}\`.`,
              ],
            ],
          }
        : {
            heading: title,
            table: targetsTable(targets),
            sentences: next === null ? [] : [[{ text: more, style: 'dim' }]],
          },
    ],
  }
}

function targetsTable(targets: readonly Target[]): Table {
  const isGrouped = targets.some(({ group }) => group !== null)
  const hasErrors = targets.some(({ lastError }) => lastError !== null)
  return makeTable(targets, [
    left('TARGET', ({ id, origin }) => formatRunId(id, origin)),
    left('STATUS', ({ status }) => formatTargetStatus(status)),
    ...(isGrouped ? [flex<Target>('GROUP', ({ group }) => group ?? '–', 1)] : []),
    right('PAGE', ({ page }) => String(page), 2),
    right('TRIES', ({ attempts }) => String(attempts), 3),
    flex('KEY', ({ key }) => key),
    ...(hasErrors
      ? [flex<Target>('LAST ERROR', ({ lastError }) => lastError?.split('\n', 1)[0] ?? '')]
      : []),
  ])
}
