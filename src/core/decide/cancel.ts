import { shortId } from '../model/id.ts'
import type { Run } from '../model/run.ts'

type CancellableRun = Pick<Run, 'id' | 'adopted'>

/** Whether a person can end it: a row of a table of their own only where there is a word for that. */
export function canCancel({ adopted }: CancellableRun): boolean {
  return adopted === undefined || adopted.can.includes('cancel')
}

/** What would end it, whatever it is: the command, or what such a row lacks for it. */
export function cancelHint(run: CancellableRun): string {
  const { id, adopted } = run
  if (!adopted || canCancel(run)) return `\`unstuck cancel ${shortId(id)}\` ends it whatever it is`
  if (adopted.key === '') return 'a whole table is not ended as one'
  return `to end it whatever it is, map ${cancelledStatusSetting(adopted.table)} in the config`
}

/** Why it cannot be ended; null when it can. */
export function cancelBlockedReason(run: CancellableRun): string | null {
  const { id, adopted } = run
  if (!adopted || canCancel(run)) return null
  const { table, key } = adopted
  return key === ''
    ? `Run ${shortId(id)} is the whole table ${table}: it is not ended as one. Set single targets aside with \`unstuck park\`.`
    : `No status is mapped for cancel on a run of ${table}: map ${cancelledStatusSetting(table)} in the config.`
}

/** What is to be mapped before a row of this table can be ended. */
export function cancelledStatusSetting(table: string): string {
  return `adopted.${table}.statuses.cancelled`
}
