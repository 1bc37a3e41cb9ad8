/**
 * What a wrapped command needs: the guard of its source, its lives, what it was given and the files it made. The input
 * is `json`, not `jsonb`: the command gets what was given, also a NUL.
 */
export const commands = /* sql */ `
  ALTER TABLE unstuck.run ADD COLUMN input json, ADD COLUMN artifacts integer NOT NULL DEFAULT 0;

  CREATE TABLE unstuck.guard (
    source          text COLLATE "C" PRIMARY KEY,
    worker_id       uuid,                      -- null: free
    since           timestamptz,
    kill_timeout_ms float8 NOT NULL,
    ending_since    timestamptz,
    cookie          text NOT NULL,
    gave_up_at      timestamptz,
    gave_up_because text
  );
  CREATE INDEX guard_held ON unstuck.guard (worker_id) WHERE worker_id IS NOT NULL;

  CREATE TABLE unstuck.execution (
    id          uuid PRIMARY KEY,
    run_id      uuid NOT NULL REFERENCES unstuck.run (id) ON DELETE CASCADE,
    worker_id   uuid NOT NULL,
    host        text NOT NULL,
    command     jsonb NOT NULL,
    output_dir  text NOT NULL,
    log         text NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,                   -- null: it has not ended, and nothing below is set
    exit_code   integer,
    signal      text,
    because     text,
    artifacts   integer,
    peak_memory float8
  );
  CREATE INDEX execution_by_run ON unstuck.execution (run_id, id);
`
