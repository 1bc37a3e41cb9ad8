import { shortId } from '../../core/model/id.ts'
import type { InvalidClaim, Inspection } from './store/store.ts'
import { plural } from '../../presenters/format.ts'
import { firstOf, ok, problem, warning, type Finding } from '../../contracts/finding.ts'

const REPAIR_ADVICE =
  'Keep a copy of the database as it is. If tables were not edited by hand and no backup was restored in part, report it with this output.'

/** Checks the data for violations of docs/reference/guarantees.md. */
export function guaranteeFindings(inspection: Inspection): Finding[] {
  return [
    countersFinding(inspection),
    oneLiveRunFinding(inspection),
    claimsFinding(inspection),
    endedRunsFinding(inspection),
  ]
}

function countersFinding({ counters: { checked, unchecked, mismatches } }: Inspection): Finding {
  const scope = unchecked > 0 ? ` (${unchecked} more were not counted: too many targets)` : ''
  if (mismatches.length === 0) {
    return checked === 0
      ? ok('counters', `There is no run to count${scope}.`)
      : ok(
          'counters',
          `The counters of ${plural(checked, 'run')} match a count of their targets${scope}.`,
        )
  }
  const runs = new Set(mismatches.map(({ run }) => run)).size
  return problem(
    'counters',
    `The counters of ${runs} of ${plural(checked, 'run')} are wrong${scope}.`,
    {
      details: firstOf(
        mismatches.map(
          ({ source, run, status, recorded, counted }) =>
            `${source} ${shortId(run)}: ${recorded} ${status.replace('_', ' ')} recorded, ${counted} counted`,
        ),
      ),
      why: 'Status, progress and metrics of these runs are wrong (P14).',
      fix: REPAIR_ADVICE,
    },
  )
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
      why: 'Two copies crawl the same site at once (P10). The unique index run_live, which prevents it, is missing or damaged.',
      fix: 'Stop the workers, end all but one run of a source with `unstuck cancel RUN`, and restore the index.',
    },
  )
}

const FAULT: Record<InvalidClaim['fault'], string> = {
  'no-epoch': 'claimed without an epoch',
  'worker-ended': 'its worker has ended',
  'worker-unknown': 'its worker is unknown',
}

function claimsFinding({ invalidClaims }: Inspection): Finding {
  if (invalidClaims.length === 0) return ok('claims', 'Every target in progress has a worker.')
  return problem(
    'claims',
    `${plural(invalidClaims.length, 'target')} in progress without a worker.`,
    {
      details: firstOf(
        invalidClaims.map(
          ({ source, run, target, fault }) =>
            `${source} ${shortId(run)}, target ${shortId(target)}: ${FAULT[fault]}`,
        ),
      ),
      why: 'Recovery looks for lost workers, so it does not find them, and their run cannot end (P1, P8).',
      fix: '`unstuck park TARGET`, then `unstuck unpark TARGET`, plans one again after its last saved page.',
    },
  )
}

function endedRunsFinding({ withoutEndTime }: Inspection): Finding {
  if (withoutEndTime.length === 0) return ok('ended-runs', 'Every ended run has an end time.')
  return warning(
    'ended-runs',
    `${plural(withoutEndTime.length, 'run')} ended without an end time.`,
    {
      details: firstOf(withoutEndTime.map(({ source, run }) => `${source} ${shortId(run)}`)),
      why: 'Unstuck writes status and time together, so another program has changed the row (P7).',
      fix: REPAIR_ADVICE,
    },
  )
}
