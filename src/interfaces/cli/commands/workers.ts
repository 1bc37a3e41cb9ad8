import { shortId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { WorkerView } from '../../../presenters/view.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import {
  formatAge,
  formatAgo,
  formatProcessCell,
  formatLiveness,
} from '../../../presenters/format.ts'
import { openContext } from '../../../app/open-context.ts'
import { assess } from '../../../core/recovery/assess.ts'
import { workerViews } from '../../../presenters/workers.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck workers --watch',
    'unstuck workers --older 1h  # only those not heard of for an hour',
  ],
  options: {
    older: option.duration('AGE', 'only workers whose last beat is older', undefined),
  },
  watch: true,

  async run({ options, database, settings }) {
    const store = await database.openIfExists()
    const assessment = store && (await assess(await openContext(store, settings)))
    const now = assessment?.now ?? Date.now()
    const all = assessment ? workerViews(assessment) : []
    const items = all.filter(
      ({ lastHeartbeatAt }) => now - Date.parse(lastHeartbeatAt) > (options.older ?? -Infinity),
    )
    const adopts = (await settings()).adopted.length > 0
    return {
      data: { items, next: null },
      print: (writer) =>
        printWorkers(writer, items, { total: all.length, now, hasAdopted: adopts }),
    }
  },
})

export function printWorkers(
  writer: TextWriter,
  items: readonly WorkerView[],
  { total, now, hasAdopted }: { total: number; now: Millis; hasAdopted: boolean },
): void {
  if (items.length === 0) {
    writer.paragraph(
      total === 0
        ? hasAdopted
          ? 'No worker runs, and no row of your tables tells who works on it.'
          : 'No worker runs. Start one with `unstuck work crawl.ts`.'
        : 'No worker is that old.',
    )
    return
  }
  writer.table(
    [
      { header: 'WORKER' },
      { header: 'PROCESS', flex: true },
      { header: 'SIGN' },
      { header: 'TARGETS', align: 'right', optional: 1 },
      { header: 'UP', align: 'right', optional: 2 },
      { header: 'LAST BEAT', align: 'right' },
    ],
    items.map((worker) => [
      shortId(worker.id),
      formatProcessCell(worker),
      formatLiveness(worker.liveness),
      String(worker.targets),
      formatAge(now - Date.parse(worker.startedAt)),
      formatAgo(Date.parse(worker.lastHeartbeatAt), now),
    ]),
  )
  const doubtful = items.filter(({ liveness }) => liveness !== 'present')
  if (doubtful.length > 0) writer.heading('Why')
  for (const { id, liveness, because } of doubtful)
    writer.paragraph(`${shortId(id)} ${liveness}: ${because}.`)
}
