import { describe } from 'node:test'
import type { Engine } from '../../../testing/test-database.ts'
import { activityTests } from './activity.ts'
import { counterTests } from './counters.ts'
import { checkpointTests } from './checkpoints.ts'
import { claimingTests } from './claiming.ts'
import { crashTests } from './crashes.ts'
import { lostClaimTests } from './lost-claims.ts'
import { dirtyTextTests } from './dirty-text.ts'
import { faultTests } from './faults.ts'
import { fencingTests } from './fencing.ts'
import { sourceLockTests } from './source-locks.ts'
import { inTransactionTests } from './in-transaction.ts'
import { itemTests } from './items.ts'
import { listingTests } from './listing.ts'
import { oneLiveRunTests } from './one-live-run.ts'
import { openingTests } from './opening.ts'
import { planningTests } from './planning.ts'
import { presenceTests } from './presence.ts'
import { recoveryTests } from './recovery.ts'
import { repeatTests } from './repeats.ts'
import { replanTests } from './replanning.ts'
import { retentionTests } from './retention.ts'
import { settleTests } from './settle.ts'
import { runMoveTests } from './run-moves.ts'
import { auditTests } from './audit.ts'
import { leadershipTests } from './leadership.ts'
import { undoingTests } from './revert.ts'
import { monitoringTests } from './monitoring.ts'
import { workerTests } from './workers.ts'

/** What every engine must keep. An engine's own test file calls this and adds what is its alone. */
export function conformance(engine: Engine): void {
  describe(`${engine.name} keeps the store's laws`, () => {
    describe('opening', () => openingTests(engine))
    describe('one live run', () => oneLiveRunTests(engine))
    describe('planning', () => planningTests(engine))
    describe('settling', () => settleTests(engine))
    describe('listing', () => listingTests(engine))
    describe('claiming', () => claimingTests(engine))
    describe('crashes', () => crashTests(engine))
    describe('lost claims', () => lostClaimTests(engine))
    describe('fencing', () => fencingTests(engine))
    describe('checkpoints', () => checkpointTests(engine))
    describe('pages sent again', () => repeatTests(engine))
    describe("the user's own rows", () => inTransactionTests(engine))
    describe('items', () => itemTests(engine))
    describe('dirty text', () => dirtyTextTests(engine))
    describe('workers', () => workerTests(engine))
    describe('presence', () => presenceTests(engine))
    describe('guards', () => sourceLockTests(engine))
    describe('activity and input', () => activityTests(engine))
    describe('recovery', () => recoveryTests(engine))
    describe('what is done to runs', () => runMoveTests(engine))
    describe('the trail, and what is left', () => auditTests(engine))
    describe('what is done to targets', () => replanTests(engine))
    describe('undoing', () => undoingTests(engine))
    describe('turns', () => leadershipTests(engine))
    describe('books', () => counterTests(engine))
    describe('watching', () => monitoringTests(engine))
    describe('retention', () => retentionTests(engine))
    describe('faults', () => faultTests(engine))
  })
}
