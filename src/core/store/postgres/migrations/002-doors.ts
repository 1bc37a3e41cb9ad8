/** What people do to runs: opening them again, and a trail that is read by time. */
export const doors = /* sql */ `
  ALTER TABLE unstuck.run ADD COLUMN resumed_at timestamptz, ADD COLUMN reopened_at timestamptz;
  CREATE INDEX audit_by_time ON unstuck.audit (at);
`
