/**
 * Crashes that may yet turn out to be none: what recovery took from a worker that was not proven dead. A heartbeat of
 * that worker strikes them off. `crashes_since_epoch`: claims up to this epoch no longer count in `crashes`.
 */
export const lostClaims = /* sql */ `
  CREATE TABLE lost_claim (
    worker_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    alone     INTEGER NOT NULL,
    parked    INTEGER NOT NULL,             -- the target was parked with this verdict
    PRIMARY KEY (worker_id, target_id)
  ) STRICT, WITHOUT ROWID;

  ALTER TABLE target ADD COLUMN crashes_since_epoch INTEGER NOT NULL DEFAULT 0;
`
