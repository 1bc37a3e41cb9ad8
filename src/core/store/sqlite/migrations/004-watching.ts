/** What those who look on need: how it went over time, what people were told and did, and lists that stay quick. */
export const watching = /* sql */ `
  ALTER TABLE worker ADD COLUMN stats TEXT;

  CREATE INDEX run_listed  ON run (status, source, id);
  CREATE INDEX run_by_age  ON run (created_at, id);
  CREATE INDEX run_by_end  ON run (finished_at) WHERE finished_at IS NOT NULL;
  -- What waits for a person, of all runs.
  CREATE INDEX target_troubled ON target (id) WHERE status IN ('failed', 'stuck', 'parked');

  -- How far each live run was, minute by minute.
  CREATE TABLE sample (
    at     INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    source TEXT NOT NULL,
    pages  INTEGER NOT NULL,
    items  INTEGER NOT NULL,
    done   REAL NOT NULL,
    ended  INTEGER NOT NULL                 -- 1: taken after the run's end
  ) STRICT;
  CREATE INDEX sample_by_time   ON sample (at);
  CREATE INDEX sample_by_run    ON sample (run_id, at);
  CREATE INDEX sample_by_source ON sample (source, at);
  CREATE INDEX sample_ended     ON sample (at) WHERE ended = 1;

  CREATE TABLE alert (
    cause        TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,             -- the rules by which it is open
    rule         TEXT NOT NULL,
    source       TEXT,
    run_id       TEXT,
    because      TEXT NOT NULL,
    command      TEXT NOT NULL,
    since        INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    resolved_at  INTEGER                    -- null: open
  ) STRICT;
  CREATE INDEX alert_open     ON alert (since, cause) WHERE resolved_at IS NULL;
  CREATE INDEX alert_resolved ON alert (resolved_at)  WHERE resolved_at IS NOT NULL;
  -- Who was told of which alert.
  CREATE TABLE telling (
    cause       TEXT NOT NULL,
    destination TEXT NOT NULL,
    sent_at     INTEGER,
    ended_at    INTEGER,                    -- told that it is over
    PRIMARY KEY (cause, destination)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE operation (
    id        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    address   TEXT,
    call      TEXT NOT NULL,
    selection TEXT NOT NULL,
    plan      TEXT,
    status    INTEGER NOT NULL,
    result    TEXT NOT NULL
  ) STRICT;
`
