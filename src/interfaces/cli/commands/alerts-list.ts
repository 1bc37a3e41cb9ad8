import type { Alert } from '../../../core/model/alert.ts'
import { EXIT } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import { alertView } from '../../../presenters/overview.ts'
import { defineCommand } from '../command.ts'
import { printFirst, ROWS_MAX } from '../../../lib/terminal/long-lists.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { ago } from '../../../presenters/format.ts'

export const alertsList = defineCommand({
  name: 'list',
  summary: 'What is open: since when, why, and what to type.',
  examples: ['unstuck alerts list', 'unstuck alerts list --json'],
  watch: true,

  async run({ database }) {
    const store = await database.openIfAny()
    const now = store ? await store.now() : Date.now()
    const open = store ? await store.openAlerts() : []
    return {
      data: { items: open.map(alertView), next: null },
      text: (paper) => printOpen(paper, open, now),
      exitCode: open.length > 0 ? EXIT.leftForAPerson : EXIT.done,
    }
  },
})

function printOpen(paper: Paper, open: readonly Alert[], now: Millis): void {
  if (open.length === 0) return paper.say('No alert is open.')
  paper.table(
    [
      { head: 'ALERT' },
      { head: 'SOURCE', flex: true },
      { head: 'RUN', optional: 1 },
      { head: 'SINCE', align: 'right' },
      { head: 'TOLD', align: 'right' },
    ],
    open
      .slice(0, ROWS_MAX)
      .map(({ rule, source, run, since, lastSentAt }) => [
        rule,
        source ?? 'several',
        run === null ? '' : shortId(run),
        ago(since, now),
        lastSentAt === null ? 'nobody' : ago(lastSentAt, now),
      ]),
  )
  paper.blank()
  const print = ({ because, command }: Alert): void => paper.say(`- ${because}: \`${command}\``)
  printFirst(paper, open, print, '`--json` has all', ROWS_MAX)
}
