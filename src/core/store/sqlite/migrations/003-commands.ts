/** What a wrapped command needs: the guard of its source, its lives, what it was given and the files it made. */
export const commands = /* sql */ `
  ALTER TABLE run ADD COLUMN input TEXT;
  ALTER TABLE run ADD COLUMN artifacts INTEGER NOT NULL DEFAULT 0;

  CREATE TABLE guard (
    source          TEXT PRIMARY KEY,
    worker_id       TEXT,                   -- null: free
    since           INTEGER,
    kill_timeout_ms INTEGER NOT NULL,
    ending_since    INTEGER,
    cookie          TEXT NOT NULL,
    gave_up_at      INTEGER,
    gave_up_because TEXT
  ) STRICT;
  CREATE INDEX guard_held ON guard (worker_id) WHERE worker_id IS NOT NULL;

  CREATE TABLE execution (
    id          TEXT PRIMARY KEY,
    run_id      TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    worker_id   TEXT NOT NULL,
    host        TEXT NOT NULL,
    command     TEXT NOT NULL,
    output_dir  TEXT NOT NULL,
    log         TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,                    -- null: it has not ended, and nothing below is set
    exit_code   INTEGER,
    signal      TEXT,
    because     TEXT,
    artifacts   INTEGER,
    peak_memory INTEGER
  ) STRICT;
  CREATE INDEX execution_by_run ON execution (run_id, id);
`
