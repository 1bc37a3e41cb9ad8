import type { Group } from '../../presenters/progress.ts'
import { countsView } from '../../presenters/view.ts'
import type { Cell, Paper } from '../../lib/terminal/text-writer.ts'
import { bar, plural } from '../../presenters/format.ts'

/** Those with trouble first, then the largest. */
export function printGroups(paper: Paper, groups: readonly Group[], max: number): void {
  const bad = ({ counts: { targets } }: Group): number =>
    targets.failed + targets.parked + targets.stuck
  const views = groups
    .toSorted((a, b) => bad(b) - bad(a) || countsView(b.counts).total - countsView(a.counts).total)
    .slice(0, max)
    .map(({ group, counts }) => ({ group, ...countsView(counts) }))
  paper.table(
    [
      { head: 'GROUP', flex: true },
      { head: 'DONE', align: 'right' },
      { head: '', optional: 2 },
      { head: 'WORKING', align: 'right', optional: 4 },
      { head: 'FAILED', align: 'right' },
      { head: 'PARKED', align: 'right' },
      { head: 'STUCK', align: 'right', optional: 1 },
      { head: 'PAGES', align: 'right', optional: 5 },
      { head: 'ITEMS', align: 'right', optional: 3 },
    ],
    views.map((view) => [
      view.group ?? '(none)',
      `${view.done}/${view.total}`,
      bar(view.done, view.total),
      String(view.in_progress),
      trouble(view.failed),
      trouble(view.parked),
      trouble(view.stuck),
      String(view.pages),
      String(view.extracted),
    ]),
  )
  const rest = groups.length - views.length
  if (rest > 0)
    paper.line({
      text: `… and ${plural(rest, 'more group')}: \`unstuck progress --by group\``,
      ink: 'dim',
    })
}

function trouble(count: number): Cell {
  return { text: String(count), ink: count > 0 ? 'bad' : 'dim' }
}
