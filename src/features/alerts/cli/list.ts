import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import { alertView } from '../../../presenters/overview.ts'
import { firstSentences, ROWS_MAX, type Section } from '../../../lib/text/sentence.ts'
import { formatAgo } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { ALERT_STORE, type Alert } from '../store/store.ts'

export const command = defineCommand({
  examples: ['unstuck alerts list', 'unstuck alerts list --json'],
  watch: true,

  async run({ database }) {
    const store = await database.openIfExists()
    const now = store ? await store.now() : Date.now()
    const open = store ? await (await store.extend(ALERT_STORE)).listAlerts({ open: true }) : []
    return {
      data: { items: open.map(alertView), next: null },
      print: (writer) => writer.sections(openAlertSections(open, now)),
      exitCode: open.length > 0 ? EXIT.needsAttention : EXIT.done,
    }
  },
})

function openAlertSections(open: readonly Alert[], now: Millis): Section[] {
  if (open.length === 0) return [{ heading: null, sentences: [['No alert is open.']] }]
  const table = {
    columns: [
      { header: 'ALERT' },
      { header: 'SOURCE', flex: true },
      { header: 'RUN', optional: 1 },
      { header: 'SINCE', align: 'right' },
      { header: 'SENT', align: 'right' },
    ] as const,
    rows: open
      .slice(0, ROWS_MAX)
      .map(({ rule, source, run, since, lastSentAt }) => [
        rule,
        source ?? 'several',
        run === null ? '' : shortId(run),
        formatAgo(since, now),
        lastSentAt === null ? 'never' : formatAgo(lastSentAt, now),
      ]),
  }
  const reasons = open.map(({ because, command }) => [`- ${because}: \`${command}\``])
  return [
    { heading: null, table, sentences: [] },
    { heading: null, sentences: firstSentences(reasons, '`--json` has all', ROWS_MAX) },
  ]
}
