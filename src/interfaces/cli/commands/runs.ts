import { shortId } from '../../../core/model/id.ts'
import { RUN_STATUSES, type Run } from '../../../core/model/run.ts'
import { inWords, type Millis } from '../../../core/model/time.ts'
import { runView } from '../../../presenters/view.ts'
import { defineCommand } from '../command.ts'
import { option } from '../option.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { ago, doneOfTotal, runStatus, sourceOf } from '../../../presenters/format.ts'

export const runs = defineCommand({
  name: 'runs',
  summary: 'All runs, newest first.',
  examples: [
    'unstuck runs --source directory',
    'unstuck runs --status failed --limit 5',
    "unstuck runs --json | jq -r '.items[].id'",
  ],
  options: {
    source: option.text('SOURCE', 'only runs of this source'),
    status: option.choice(RUN_STATUSES, 'only runs in this status', undefined),
    limit: option.count('N', 'how many', 20, { max: 500 }),
    after: option.text('CURSOR', 'go on after this one: `next` of the last answer'),
  },
  watch: true,

  async run({ options, database }) {
    const store = await database.openIfAny()
    const now = store ? await store.now() : Date.now()
    const { status, ...page } = options
    const filter = { ...page, statuses: status && [status] }
    const { items, next } = store ? await store.runs(filter) : { items: [], next: null }
    return {
      data: { items: items.map(runView), next },
      text: (paper) => printRuns(paper, items, next, now),
    }
  },
})

export function printRuns(
  paper: Paper,
  items: readonly Run[],
  next: string | null,
  now: Millis,
): void {
  if (items.length === 0) {
    paper.say('No runs. `unstuck work crawl.ts` starts one.')
    return
  }
  paper.table(
    [
      { head: 'RUN' },
      { head: 'SOURCE', flex: true },
      { head: 'STATUS', flex: true },
      { head: 'DONE', align: 'right' },
      { head: 'ITEMS', align: 'right', optional: 1 },
      { head: 'CREATED', align: 'right', optional: 2 },
      { head: 'TOOK', align: 'right', optional: 3 },
    ],
    items.map((run) => [
      shortId(run.id),
      sourceOf(run),
      runStatus(run.status),
      doneOfTotal(run),
      String(runView(run).extracted),
      ago(run.createdAt, now),
      took(run, now),
    ]),
  )
  if (next !== null) paper.say({ text: `There are more: add \`--after ${next}\`.`, ink: 'dim' })
}

function took(run: Run, now: Millis): string {
  return run.startedAt === null ? '–' : inWords((run.finishedAt ?? now) - run.startedAt)
}
