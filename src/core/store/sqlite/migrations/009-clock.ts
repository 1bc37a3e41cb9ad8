/** The time that all processes of a boot agree on: see docs/decisions/0019-store-clock.md. */
export const clock = /* sql */ `
  CREATE TABLE clock (
    -- The boot, and the time namespace in it.
    id          TEXT PRIMARY KEY,
    -- Added to the milliseconds since boot it makes the time.
    offset_ms   INTEGER NOT NULL,
    -- When it was last moved towards the wall clock, in milliseconds since boot.
    adjusted_ms INTEGER NOT NULL
  ) STRICT
`
