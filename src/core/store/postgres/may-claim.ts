/**
 * A condition on a worker's row, for every statement that claims. A worker that could be taken for lost (`sessionGraceMs`)
 * must not claim: a heartbeat has to be accepted first, or what it claims would be taken from it again at once.
 */
export const MAY_CLAIM = /* sql */ `
  ended_at IS NULL AND last_heartbeat_at >= clock_timestamp()
                     - greatest(lease_ms / 3.0, 3.0 * heartbeat_ms) * interval '1 millisecond'
`
