import type { GroupProgress } from '../../presenters/progress.ts'
import { countsView } from '../../presenters/view.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { Cell } from '../../lib/text/sentence.ts'
import { progressBar, plural } from '../../presenters/format.ts'

/** Those with trouble first, then the largest. */
export function printGroups(
  writer: TextWriter,
  groups: readonly GroupProgress[],
  max: number,
): void {
  const bad = ({ counts: { targets } }: GroupProgress): number =>
    targets.failed + targets.parked + targets.stuck
  const views = groups
    .toSorted((a, b) => bad(b) - bad(a) || countsView(b.counts).total - countsView(a.counts).total)
    .slice(0, max)
    .map(({ group, counts }) => ({ group, ...countsView(counts) }))
  writer.table(
    [
      { header: 'GROUP', flex: true },
      { header: 'DONE', align: 'right' },
      { header: '', optional: 2 },
      { header: 'WORKING', align: 'right', optional: 4 },
      { header: 'FAILED', align: 'right' },
      { header: 'PARKED', align: 'right' },
      { header: 'STUCK', align: 'right', optional: 1 },
      { header: 'PAGES', align: 'right', optional: 5 },
      { header: 'ITEMS', align: 'right', optional: 3 },
    ],
    views.map((view) => [
      view.group ?? '(none)',
      `${view.done}/${view.total}`,
      progressBar(view.done, view.total),
      String(view.in_progress),
      failureCell(view.failed),
      failureCell(view.parked),
      failureCell(view.stuck),
      String(view.pages),
      String(view.extracted),
    ]),
  )
  const rest = groups.length - views.length
  if (rest > 0)
    writer.line({
      text: `… and ${plural(rest, 'more group')}: \`unstuck progress --by group\``,
      style: 'dim',
    })
}

function failureCell(count: number): Cell {
  return { text: String(count), style: count > 0 ? 'bad' : 'dim' }
}
