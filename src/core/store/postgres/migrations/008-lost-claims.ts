/**
 * Crashes that may yet turn out to be none: what recovery took from a worker that was not proven dead. A heartbeat of
 * that worker strikes them off. `crashes_since_epoch`: claims up to this epoch no longer count in `crashes`.
 */
export const lostClaims = /* sql */ `
  CREATE TABLE unstuck.lost_claim (
    worker_id uuid NOT NULL,
    target_id uuid NOT NULL,
    epoch     integer NOT NULL,
    alone     boolean NOT NULL,
    parked    boolean NOT NULL,             -- the target was parked with this verdict
    PRIMARY KEY (worker_id, target_id)
  );

  -- Last: from here to the end nothing can be claimed.
  ALTER TABLE unstuck.target ADD COLUMN crashes_since_epoch integer NOT NULL DEFAULT 0;
`
