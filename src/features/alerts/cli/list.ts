import { EXIT } from '../../../core/model/exit-codes.ts'
import type { Millis } from '../../../core/model/time.ts'
import { presentAlerts } from '../../../presenters/alerts.ts'
import { loadOverview, noOverview } from '../../../presenters/overview.ts'
import { firstSentences, ROWS_MAX, type Section } from '../../../lib/text/sentence.ts'
import { readRunName } from '../../../presenters/find.ts'
import { formatAgo } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import type { Alert } from '../store/store.ts'

export const command = defineCommand({
  examples: ['unstuck alerts list', 'unstuck alerts list --json'],
  watch: true,

  async run({ openContextIfExists }) {
    const context = await openContextIfExists()
    const overview = context ? await loadOverview(context) : noOverview(Date.now())
    const { severity, summary, attention, open } = presentAlerts(overview)
    const names = new Map<string, string>()
    for (const { run } of overview.alerts.slice(0, ROWS_MAX))
      if (run !== null && context) names.set(run, await readRunName(context.store, run))
    const table = openAlertSections(overview.alerts, names, overview.assessment.now)
    return {
      data: { items: open, next: null, severity, summary, attention },
      print: (writer) => writer.sections([...table, { heading: null, sentences: [[summary]] }]),
      exitCode: severity === 'ok' ? EXIT.done : EXIT.needsAttention,
    }
  },
})

function openAlertSections(
  open: readonly Alert[],
  names: ReadonlyMap<string, string>,
  now: Millis,
): Section[] {
  if (open.length === 0) return []
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
        run === null ? '' : names.get(run)!,
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
