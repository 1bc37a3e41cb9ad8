import { shortId } from '../model/id.ts'
import type { Run } from '../model/run.ts'

type CancellableRun = Pick<Run, 'id' | 'traits'>

/** Whether its source supports it: a row of a table of your own only if a status is mapped for it. */
export function canCancel({ traits }: CancellableRun): boolean {
  return traits.actions.includes('cancel')
}

/** Returns the command that ends the run whatever it is, or what is missing for it. */
export function cancelHint(run: CancellableRun): string {
  const { id, traits } = run
  if (canCancel(run)) return `\`unstuck cancel ${shortId(id)}\` ends it whatever it is`
  if (traits.cancelSetting === null) return 'a whole table is not ended as one'
  return `to end it whatever it is, map ${traits.cancelSetting} in the config`
}

/** Returns why the run cannot be cancelled; null if it can. */
export function cancelBlockedReason(run: CancellableRun): string | null {
  const { id, traits } = run
  const { origin, cancelSetting } = traits
  if (canCancel(run) || origin === null) return null
  return cancelSetting === null
    ? `Run ${shortId(id)} is the whole table ${origin.table}: it is not ended as one. Set single targets aside with \`unstuck park\`.`
    : `No status is mapped for cancel on a run of ${origin.table}: map ${cancelSetting} in the config.`
}
