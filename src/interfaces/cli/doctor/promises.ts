import { shortId } from '../../../core/model/id.ts'
import type { BadClaim, Inspection } from '../../../core/store/inspection.ts'
import { plural } from '../../../presenters/format.ts'
import { firstFew, ok, problem, warning, type Finding } from './finding.ts'

const BY_HAND =
  'Keep a copy of the database as it is. If nobody changed tables by hand or restored half a backup, report it with this output.'

/** What the data shows of the promises in docs/guarantees.md. */
export function promiseFindings(inspection: Inspection): Finding[] {
  return [
    booksFinding(inspection),
    oneLiveRunFinding(inspection),
    claimsFinding(inspection),
    endedRunsFinding(inspection),
  ]
}

function booksFinding({ books: { checked, leftOut, wrong } }: Inspection): Finding {
  const scope =
    leftOut > 0 ? ` (${leftOut} more were not counted: too many targets for a look)` : ''
  if (wrong.length === 0) {
    return checked === 0
      ? ok('books', `There is no run to count${scope}.`)
      : ok(
          'books',
          `The books of ${plural(checked, 'run')} agree with a count of their targets${scope}.`,
        )
  }
  const runs = new Set(wrong.map(({ run }) => run)).size
  return problem('books', `The books of ${runs} of ${plural(checked, 'run')} are wrong${scope}.`, {
    details: firstFew(
      wrong.map(
        ({ source, run, status, booked, counted }) =>
          `${source} ${shortId(run)}: ${booked} ${status.replace('_', ' ')} in the books, ${counted} counted`,
      ),
    ),
    why: 'What status, progress and metrics show of them is not what is there (P14).',
    mend: BY_HAND,
  })
}

function oneLiveRunFinding({ crowded }: Inspection): Finding {
  if (crowded.length === 0)
    return ok('one-live-run', 'No source has two live runs of Unstuck’s own.')
  return problem(
    'one-live-run',
    `${plural(crowded.length, 'source')} with more than one live run.`,
    {
      details: firstFew(
        crowded.map(({ source, runs }) => `${source}: ${runs.map(shortId).join(', ')}`),
      ),
      why: 'Two copies crawl the same site at once (P10). The unique index run_live, which rules it out, must be gone or damaged.',
      mend: 'Stop the workers, end all but one run of a source with `unstuck cancel RUN`, and restore the index.',
    },
  )
}

const FAULT: Record<BadClaim['fault'], string> = {
  'no-epoch': 'claimed without an epoch',
  'worker-ended': 'its worker has ended',
  'worker-unknown': 'its worker is not known',
}

function claimsFinding({ badClaims }: Inspection): Finding {
  if (badClaims.length === 0)
    return ok('claims', 'Every target in progress has a worker to answer for it.')
  return problem(
    'claims',
    `${plural(badClaims.length, 'target')} in progress with nobody to answer for it.`,
    {
      details: firstFew(
        badClaims.map(
          ({ source, run, target, fault }) =>
            `${source} ${shortId(run)}, target ${shortId(target)}: ${FAULT[fault]}`,
        ),
      ),
      why: 'Recovery goes by workers, so it will not find them, and their run cannot end (P1, P8).',
      mend: '`unstuck park TARGET`, then `unstuck unpark TARGET`, puts one back in line behind its last saved page.',
    },
  )
}

function endedRunsFinding({ endless }: Inspection): Finding {
  if (endless.length === 0) return ok('ended-runs', 'Every run that ended says when.')
  return warning('ended-runs', `${plural(endless.length, 'run')} ended without a time.`, {
    details: firstFew(endless.map(({ source, run }) => `${source} ${shortId(run)}`)),
    why: 'unstuck writes status and time together, so somebody else has changed the row (P7).',
    mend: BY_HAND,
  })
}
