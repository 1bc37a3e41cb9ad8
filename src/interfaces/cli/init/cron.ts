import type { Facts, Supervisor } from './facts.ts'
import { shellWord } from '../../../core/model/shell-command.ts'

const PATH = 'unstuck.cron'

export const cron: Supervisor = {
  files: (facts) => [{ path: PATH, text: crontab(facts), about: 'cleans every night, by cron' }],
  next: () => [`(crontab -l 2>/dev/null; cat ${PATH}) | crontab -`],
}

function crontab({ folder, node, bin, module }: Facts): string {
  const there = `cd ${cronEscape(folder)} && mkdir -p .unstuck`
  const unstuck = `${cronEscape(node)} ${cronEscape(bin)}`
  return `# Cleans up every night at 03:00: runs that are dead are marked, none is deleted. To add it to your crontab, once:
#
#   (crontab -l 2>/dev/null; cat ${PATH}) | crontab -
#
# cron knows neither your PATH nor your environment, so the paths are those of this machine and of the Node that wrote
# this file. If the database's address comes from the environment, write UNSTUCK_DB=… before the path of Node.
0 3 * * * ${there} && ${unstuck} clean --auto >> .unstuck/clean.log 2>&1
# A new run every night at 01:00, for workers that were started with --no-start:
# 0 1 * * * ${there} && ${unstuck} enqueue ${cronEscape(module)} >> .unstuck/enqueue.log 2>&1
`
}

/** cron ends a command at %. Some crons take the backslash before it away and some do not: outside of quotes both are right. */
function cronEscape(text: string): string {
  return text
    .split('%')
    .map((part) => (part === '' ? '' : shellWord(part)))
    .join(String.raw`\%`)
}
