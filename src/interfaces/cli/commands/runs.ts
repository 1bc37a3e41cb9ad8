import { shortId } from '../../../core/model/id.ts'
import { RUN_STATUSES, type Run } from '../../../core/model/run.ts'
import { humanizeDuration, type Millis } from '../../../core/model/time.ts'
import { runView } from '../../../presenters/view.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import {
  formatAgo,
  formatDoneOfTotal,
  formatRunStatus,
  formatSource,
} from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
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
    const store = await database.openIfExists()
    const now = store ? await store.now() : Date.now()
    const { status, ...page } = options
    const filter = { ...page, statuses: status && [status] }
    const { items, next } = store ? await store.runs(filter) : { items: [], next: null }
    return {
      data: { items: items.map(runView), next },
      print: (writer) => printRuns(writer, items, next, now),
    }
  },
})

export function printRuns(
  writer: TextWriter,
  items: readonly Run[],
  next: string | null,
  now: Millis,
): void {
  if (items.length === 0) {
    writer.paragraph('No runs. `unstuck work crawl.ts` starts one.')
    return
  }
  writer.table(
    [
      { header: 'RUN' },
      { header: 'SOURCE', flex: true },
      { header: 'STATUS', flex: true },
      { header: 'DONE', align: 'right' },
      { header: 'ITEMS', align: 'right', optional: 1 },
      { header: 'CREATED', align: 'right', optional: 2 },
      { header: 'TOOK', align: 'right', optional: 3 },
    ],
    items.map((run) => [
      shortId(run.id),
      formatSource(run),
      formatRunStatus(run.status),
      formatDoneOfTotal(run),
      String(runView(run).extracted),
      formatAgo(run.createdAt, now),
      formatDuration(run, now),
    ]),
  )
  if (next !== null)
    writer.paragraph({ text: `There are more: add \`--after ${next}\`.`, style: 'dim' })
}

function formatDuration(run: Run, now: Millis): string {
  return run.startedAt === null ? '–' : humanizeDuration((run.finishedAt ?? now) - run.startedAt)
}
