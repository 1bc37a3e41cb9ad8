/** Runs, targets, items, workers and their books. Times are milliseconds since 1970. */
export const heart = /* sql */ `
  CREATE TABLE run (
    id             TEXT PRIMARY KEY,
    source         TEXT NOT NULL,
    kind           TEXT NOT NULL CHECK (kind IN ('crawl', 'single')),
    status         TEXT NOT NULL,
    policy         TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    started_at     INTEGER,
    planned_at     INTEGER,
    finished_at    INTEGER,
    planner        TEXT,
    progress_done  INTEGER,
    progress_total INTEGER,
    resumes        INTEGER NOT NULL DEFAULT 0,
    retries        INTEGER NOT NULL DEFAULT 0,
    retry_of       TEXT,
    error          TEXT
  ) STRICT;

  -- The guard: at most one live run per source, whoever asks and however many at once.
  CREATE UNIQUE INDEX run_live ON run (source) WHERE status IN ('queued', 'running', 'interrupted');
  CREATE INDEX run_by_source ON run (source, id);
  CREATE INDEX run_by_status ON run (status, id);
  -- People type the last eight digits.
  CREATE INDEX run_by_short_id ON run (substr(id, -8));

  CREATE TABLE target (
    id               TEXT PRIMARY KEY,
    run_id           TEXT NOT NULL REFERENCES run (id),
    key              TEXT NOT NULL,
    grp              TEXT NOT NULL DEFAULT '',
    url              TEXT,
    status           TEXT NOT NULL DEFAULT 'planned',
    ready_at         INTEGER,               -- null: fresh, at once; 0: begun before, goes first
    epoch            INTEGER NOT NULL DEFAULT 0,
    claim_id         TEXT,
    worker_id        TEXT,
    claimed_at       INTEGER,
    alone            INTEGER NOT NULL DEFAULT 0,
    seq              INTEGER NOT NULL DEFAULT 0,
    page             INTEGER NOT NULL DEFAULT 0,
    page_target      INTEGER,
    next_url         TEXT,
    last_item_id     TEXT,
    cursor           TEXT,
    page_hash        TEXT,
    attempts         INTEGER NOT NULL DEFAULT 0,
    errors           INTEGER NOT NULL DEFAULT 0,
    crashes          INTEGER NOT NULL DEFAULT 0,
    crashes_alone    INTEGER NOT NULL DEFAULT 0,
    last_activity_at INTEGER NOT NULL,
    last_error       TEXT,
    finished_at      INTEGER,
    UNIQUE (run_id, key)
  ) STRICT;

  -- What can be claimed, in the order it is claimed; targets that took a worker down stand apart.
  CREATE INDEX target_ready   ON target (run_id, ready_at, id) WHERE status = 'planned' AND crashes = 0;
  CREATE INDEX target_suspect ON target (run_id, ready_at, id) WHERE status = 'planned' AND crashes > 0;
  CREATE INDEX target_held    ON target (worker_id, id)        WHERE status = 'in_progress';
  CREATE INDEX target_listed  ON target (run_id, status, id);

  CREATE TABLE item (
    source        TEXT NOT NULL,
    key           TEXT NOT NULL,
    key_version   INTEGER NOT NULL,
    url           TEXT,                     -- null: the key is the address
    data          TEXT NOT NULL,
    version       INTEGER NOT NULL DEFAULT 1,
    run_id        TEXT NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    changed_at    INTEGER NOT NULL,
    PRIMARY KEY (source, key)
  ) STRICT;

  CREATE TABLE worker (
    id            TEXT PRIMARY KEY,
    source        TEXT NOT NULL,
    host          TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    start_ticks   INTEGER,
    boot_id       TEXT,
    pid_namespace TEXT,
    presence      TEXT NOT NULL,
    version       TEXT NOT NULL,
    heartbeat_ms  INTEGER NOT NULL,
    lease_ms      INTEGER NOT NULL,
    started_at    INTEGER NOT NULL,
    last_beat_at  INTEGER NOT NULL,
    -- The same moment on the clock that runs from boot: a jump of the wall clock must not expire every lease.
    beat_uptime   INTEGER NOT NULL,
    beats         INTEGER NOT NULL DEFAULT 0,
    loop_lag_ms   INTEGER NOT NULL DEFAULT 0,
    ended_at      INTEGER
  ) STRICT;
  CREATE INDEX worker_alive ON worker (id) WHERE ended_at IS NULL;

  -- The books, kept in the transactions that change them. SQLite has one writer at a time, so a row
  -- per run and group is never fought over.
  CREATE TABLE tally (
    run_id           TEXT NOT NULL,
    grp              TEXT NOT NULL,
    planned          INTEGER NOT NULL DEFAULT 0,
    in_progress      INTEGER NOT NULL DEFAULT 0,
    done             INTEGER NOT NULL DEFAULT 0,
    failed           INTEGER NOT NULL DEFAULT 0,
    stuck            INTEGER NOT NULL DEFAULT 0,
    parked           INTEGER NOT NULL DEFAULT 0,
    pages            INTEGER NOT NULL DEFAULT 0,
    items_new        INTEGER NOT NULL DEFAULT 0,
    items_updated    INTEGER NOT NULL DEFAULT 0,
    items_unchanged  INTEGER NOT NULL DEFAULT 0,
    skipped          INTEGER NOT NULL DEFAULT 0,
    refused          INTEGER NOT NULL DEFAULT 0,
    last_activity_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, grp)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE audit (
    id        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    source    TEXT NOT NULL,
    run_id    TEXT NOT NULL,
    target_id TEXT,
    because   TEXT NOT NULL,
    evidence  TEXT NOT NULL,
    before    TEXT NOT NULL,
    after     TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_by_run ON audit (run_id, id);

  -- Whose turn it is to sweep, until when on the clock that runs from boot.
  CREATE TABLE turn (
    name         TEXT PRIMARY KEY,
    worker_id    TEXT NOT NULL,
    boot_id      TEXT,
    until_uptime INTEGER NOT NULL
  ) STRICT;
`
