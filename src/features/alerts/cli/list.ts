import { ALERT_STORE, type Alert } from '../../../features/alerts/store/store.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import { alertView } from '../../../presenters/overview.ts'
import { printFirst } from '../../../lib/terminal/long-lists.ts'
import { ROWS_MAX } from '../../../lib/text/sentence.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { formatAgo } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'

export const command = defineCommand({
  examples: ['unstuck alerts list', 'unstuck alerts list --json'],
  watch: true,

  async run({ database }) {
    const store = await database.openIfExists()
    const now = store ? await store.now() : Date.now()
    const open = store ? await (await store.extend(ALERT_STORE)).openAlerts() : []
    return {
      data: { items: open.map(alertView), next: null },
      print: (writer) => printOpenAlerts(writer, open, now),
      exitCode: open.length > 0 ? EXIT.needsAttention : EXIT.done,
    }
  },
})

function printOpenAlerts(writer: TextWriter, open: readonly Alert[], now: Millis): void {
  if (open.length === 0) return writer.paragraph('No alert is open.')
  writer.table(
    [
      { header: 'ALERT' },
      { header: 'SOURCE', flex: true },
      { header: 'RUN', optional: 1 },
      { header: 'SINCE', align: 'right' },
      { header: 'TOLD', align: 'right' },
    ],
    open
      .slice(0, ROWS_MAX)
      .map(({ rule, source, run, since, lastSentAt }) => [
        rule,
        source ?? 'several',
        run === null ? '' : shortId(run),
        formatAgo(since, now),
        lastSentAt === null ? 'nobody' : formatAgo(lastSentAt, now),
      ]),
  )
  writer.blank()
  const print = ({ because, command }: Alert): void =>
    writer.paragraph(`- ${because}: \`${command}\``)
  printFirst(writer, open, print, '`--json` has all', ROWS_MAX)
}
