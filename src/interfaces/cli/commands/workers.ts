import { shortId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { WorkerView } from '../../../presenters/view.ts'
import { defineCommand } from '../command.ts'
import { option } from '../option.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { age, ago, whoCell, workerSign } from '../../../presenters/format.ts'
import { rollCall } from '../../../presenters/workers.ts'

export const workers = defineCommand({
  name: 'workers',
  summary: 'Who works, their last sign of life, and what it says.',
  examples: [
    'unstuck workers --watch',
    'unstuck workers --older 1h  # only those not heard of for an hour',
  ],
  options: {
    older: option.duration('AGE', 'only workers whose last beat is older', undefined),
  },
  watch: true,

  async run({ options, database, settings }) {
    const store = await database.openIfAny()
    const now = store ? await store.now() : Date.now()
    const all = store ? await rollCall(store, now) : []
    const items = all.filter(
      ({ lastBeatAt }) => now - Date.parse(lastBeatAt) > (options.older ?? -Infinity),
    )
    const adopts = (await settings()).adopted.length > 0
    return {
      data: { items, next: null },
      text: (paper) => printWorkers(paper, items, { total: all.length, now, adopts }),
    }
  },
})

export function printWorkers(
  paper: Paper,
  items: readonly WorkerView[],
  { total, now, adopts }: { total: number; now: Millis; adopts: boolean },
): void {
  if (items.length === 0) {
    paper.say(
      total === 0
        ? adopts
          ? 'No worker runs, and no row of your tables tells who works on it.'
          : 'No worker runs. Start one with `unstuck work crawl.ts`.'
        : 'No worker is that old.',
    )
    return
  }
  paper.table(
    [
      { head: 'WORKER' },
      { head: 'PROCESS', flex: true },
      { head: 'SIGN' },
      { head: 'TARGETS', align: 'right', optional: 1 },
      { head: 'UP', align: 'right', optional: 2 },
      { head: 'LAST BEAT', align: 'right' },
    ],
    items.map((worker) => [
      shortId(worker.id),
      whoCell(worker),
      workerSign(worker.sign),
      String(worker.targets),
      age(now - Date.parse(worker.startedAt)),
      ago(Date.parse(worker.lastBeatAt), now),
    ]),
  )
  const doubtful = items.filter(({ sign }) => sign !== 'present')
  if (doubtful.length > 0) paper.heading('Why')
  for (const { id, sign, because } of doubtful) paper.say(`${shortId(id)} ${sign}: ${because}.`)
}
