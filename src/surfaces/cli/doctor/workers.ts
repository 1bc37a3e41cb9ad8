import { shortId } from '../../../model/id.ts'
import type { Millis } from '../../../model/time.ts'
import type { WorkerView } from '../../view.ts'
import { plural } from '../paper/words.ts'
import { firstFew, ok, warning, type Finding } from './finding.ts'

/** Recovery takes about a second: who died just now is not left behind. */
const RECOVERY_MS = 5_000

/** Whether somebody lost still holds something. */
export function workersFinding(workers: readonly WorkerView[], now: Millis): Finding {
  const present = workers.filter(({ sign }) => sign === 'present' || sign === 'stalled').length
  const lost = workers.filter(
    ({ sign, targets, lastBeatAt }) =>
      (sign === 'gone' || sign === 'silent') &&
      targets > 0 &&
      now - Date.parse(lastBeatAt) > RECOVERY_MS,
  )
  if (lost.length === 0) {
    const who = present === 0 ? 'No worker is at work' : `${plural(present, 'worker')} at work`
    return ok('workers', `${who}, and no lost one holds anything.`)
  }
  const targets = lost.reduce((sum, worker) => sum + worker.targets, 0)
  const lostOnes = plural(lost.length, 'lost worker')
  return warning('workers', `${lostOnes} still with ${plural(targets, 'target')} in hand.`, {
    details: firstFew(
      lost.map(
        ({ id, sign, because, targets }) =>
          `${shortId(id)} ${sign}, ${plural(targets, 'target')}: ${because}`,
      ),
    ),
    why:
      present === 0
        ? 'Living workers take such targets back within a second or after the lease; there is none.'
        : 'Living workers should have taken these targets back: recovery does not seem to run.',
    mend: '`unstuck recover` takes them back now, and so does the next worker that starts.',
  })
}
