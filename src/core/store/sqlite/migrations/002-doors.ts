/** What people do to runs: opening them again, and a trail that is read by time. */
export const doors = /* sql */ `
  ALTER TABLE run ADD COLUMN resumed_at INTEGER;
  ALTER TABLE run ADD COLUMN reopened_at INTEGER;
  CREATE INDEX audit_by_time ON audit (at);
`
