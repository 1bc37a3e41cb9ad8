import { shortId } from '../core/model/id.ts'
import type { InvalidClaim, Inspection } from '../core/store/inspection.ts'
import { plural } from './format.ts'
import { firstOf, ok, problem, warning, type Finding } from './finding.ts'

const REPAIR_ADVICE =
  'Keep a copy of the database as it is. If nobody changed tables by hand or restored half a backup, report it with this output.'

/** What the data shows of the promises in docs/reference/guarantees.md. */
export function guaranteeFindings(inspection: Inspection): Finding[] {
  return [
    countersFinding(inspection),
    oneLiveRunFinding(inspection),
    claimsFinding(inspection),
    endedRunsFinding(inspection),
  ]
}

function countersFinding({ counters: { checked, unchecked, mismatches } }: Inspection): Finding {
  const scope =
    unchecked > 0 ? ` (${unchecked} more were not counted: too many targets for a look)` : ''
  if (mismatches.length === 0) {
    return checked === 0
      ? ok('books', `There is no run to count${scope}.`)
      : ok(
          'books',
          `The books of ${plural(checked, 'run')} agree with a count of their targets${scope}.`,
        )
  }
  const runs = new Set(mismatches.map(({ run }) => run)).size
  return problem('books', `The books of ${runs} of ${plural(checked, 'run')} are wrong${scope}.`, {
    details: firstOf(
      mismatches.map(
        ({ source, run, status, recorded, counted }) =>
          `${source} ${shortId(run)}: ${recorded} ${status.replace('_', ' ')} in the books, ${counted} counted`,
      ),
    ),
    why: 'What status, progress and metrics show of them is not what is there (P14).',
    mend: REPAIR_ADVICE,
  })
}

function oneLiveRunFinding({ duplicateLiveRuns }: Inspection): Finding {
  if (duplicateLiveRuns.length === 0)
    return ok('one-live-run', 'No source has two live runs of Unstuck’s own.')
  return problem(
    'one-live-run',
    `${plural(duplicateLiveRuns.length, 'source')} with more than one live run.`,
    {
      details: firstOf(
        duplicateLiveRuns.map(({ source, runs }) => `${source}: ${runs.map(shortId).join(', ')}`),
      ),
      why: 'Two copies crawl the same site at once (P10). The unique index run_live, which rules it out, must be gone or damaged.',
      mend: 'Stop the workers, end all but one run of a source with `unstuck cancel RUN`, and restore the index.',
    },
  )
}

const FAULT: Record<InvalidClaim['fault'], string> = {
  'no-epoch': 'claimed without an epoch',
  'worker-ended': 'its worker has ended',
  'worker-unknown': 'its worker is not known',
}

function claimsFinding({ invalidClaims }: Inspection): Finding {
  if (invalidClaims.length === 0)
    return ok('claims', 'Every target in progress has a worker to answer for it.')
  return problem(
    'claims',
    `${plural(invalidClaims.length, 'target')} in progress with nobody to answer for it.`,
    {
      details: firstOf(
        invalidClaims.map(
          ({ source, run, target, fault }) =>
            `${source} ${shortId(run)}, target ${shortId(target)}: ${FAULT[fault]}`,
        ),
      ),
      why: 'Recovery goes by workers, so it will not find them, and their run cannot end (P1, P8).',
      mend: '`unstuck park TARGET`, then `unstuck unpark TARGET`, puts one back in line behind its last saved page.',
    },
  )
}

function endedRunsFinding({ withoutEndTime }: Inspection): Finding {
  if (withoutEndTime.length === 0) return ok('ended-runs', 'Every run that ended says when.')
  return warning('ended-runs', `${plural(withoutEndTime.length, 'run')} ended without a time.`, {
    details: firstOf(withoutEndTime.map(({ source, run }) => `${source} ${shortId(run)}`)),
    why: 'unstuck writes status and time together, so somebody else has changed the row (P7).',
    mend: REPAIR_ADVICE,
  })
}
