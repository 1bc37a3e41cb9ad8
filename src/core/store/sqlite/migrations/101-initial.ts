/** The whole schema. Times are milliseconds since 1970. */
export const initial = /* sql */ `
  CREATE TABLE run (
    id                 TEXT PRIMARY KEY,
    source             TEXT NOT NULL,
    kind               TEXT NOT NULL CHECK (kind IN ('crawl', 'single')),
    profile            TEXT,                  -- null: standard
    status             TEXT NOT NULL,
    policy             TEXT NOT NULL,         -- JSON: settings that differ from the defaults
    created_at         INTEGER NOT NULL,
    started_at         INTEGER,
    resumed_at         INTEGER,
    reopened_at        INTEGER,
    planned_at         INTEGER,
    finished_at        INTEGER,
    acknowledged_at    INTEGER,
    planning_worker_id TEXT,                  -- the worker that calls targets() now
    progress_done      INTEGER,
    progress_total     INTEGER,
    resumes            INTEGER NOT NULL DEFAULT 0,
    retries            INTEGER NOT NULL DEFAULT 0,
    retry_of           TEXT,
    error              TEXT,
    input              TEXT,                  -- JSON for its command
    artifacts          INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  -- At most one live run per source, however many processes start one at once.
  CREATE UNIQUE INDEX run_live ON run (source) WHERE status IN ('queued', 'running', 'interrupted');
  CREATE INDEX run_by_source ON run (source, id);
  CREATE INDEX run_by_status ON run (status, id);
  -- For ids given by their last eight digits.
  CREATE INDEX run_by_short_id ON run (substr(id, -8));
  CREATE INDEX run_listed ON run (status, source, id);
  CREATE INDEX run_by_age ON run (created_at, id);
  CREATE INDEX run_by_end ON run (finished_at) WHERE finished_at IS NOT NULL;

  CREATE TABLE target (
    id                  TEXT PRIMARY KEY,
    run_id              TEXT NOT NULL REFERENCES run (id),
    key                 TEXT NOT NULL,
    group_name          TEXT NOT NULL DEFAULT '',
    url                 TEXT,
    data                TEXT,                 -- JSON that the target was planned with
    status              TEXT NOT NULL DEFAULT 'planned',
    ready_at            INTEGER,              -- null: never claimed, ready at once; 0: started before, claimed first
    epoch               INTEGER NOT NULL DEFAULT 0,
    claim_id            TEXT,
    worker_id           TEXT,
    claimed_at          INTEGER,
    claimed_alone       INTEGER NOT NULL DEFAULT 0,  -- 1: its process held no other target
    checkpoint_seq      INTEGER NOT NULL DEFAULT 0,
    page                INTEGER NOT NULL DEFAULT 0,
    page_target         INTEGER,
    next_url            TEXT,
    last_item_id        TEXT,
    cursor              TEXT,
    checkpoint_hash     TEXT,                 -- of the last checkpoint, to recognize a repeated one
    attempts            INTEGER NOT NULL DEFAULT 0,
    errors              INTEGER NOT NULL DEFAULT 0,
    crashes             INTEGER NOT NULL DEFAULT 0,
    crashes_alone       INTEGER NOT NULL DEFAULT 0,
    crashes_since_epoch INTEGER NOT NULL DEFAULT 0,  -- claims up to this epoch no longer count in crashes
    last_activity_at    INTEGER NOT NULL,
    last_error          TEXT,
    finished_at         INTEGER,
    acknowledged_at     INTEGER,
    UNIQUE (run_id, key)
  ) STRICT;

  -- Claimable targets in claim order. Targets with crashes are claimed separately, one at a time.
  CREATE INDEX target_ready   ON target (run_id, ready_at, id) WHERE status = 'planned' AND crashes = 0;
  CREATE INDEX target_crashed ON target (run_id, ready_at, id) WHERE status = 'planned' AND crashes > 0;
  CREATE INDEX target_held    ON target (worker_id, id)        WHERE status = 'in_progress';
  CREATE INDEX target_listed  ON target (run_id, status, id);
  -- Dead letters of all runs. Those that are acknowledged, or are not, are told apart in the index.
  CREATE INDEX target_dead_letter ON target (id, acknowledged_at) WHERE status IN ('failed', 'stuck', 'parked');
  -- Counts the acknowledged ones of a run.
  CREATE INDEX target_acknowledged ON target (run_id, status) WHERE acknowledged_at IS NOT NULL;

  CREATE TABLE item (
    source        TEXT NOT NULL,
    key           TEXT NOT NULL,
    key_version   INTEGER NOT NULL,
    url           TEXT,                       -- null: the key is the URL
    data          TEXT NOT NULL,
    version       INTEGER NOT NULL DEFAULT 1,
    run_id        TEXT NOT NULL,
    group_name    TEXT NOT NULL DEFAULT '',   -- of the target that last saved it
    first_seen_at INTEGER NOT NULL,
    last_seen_at  INTEGER NOT NULL,
    changed_at    INTEGER NOT NULL,
    PRIMARY KEY (source, key)
  ) STRICT;
  CREATE INDEX item_by_change ON item (source, changed_at);

  CREATE TABLE worker (
    id                TEXT PRIMARY KEY,
    source            TEXT NOT NULL,
    host              TEXT NOT NULL,
    pid               INTEGER NOT NULL,
    start_ticks       INTEGER,
    boot_id           TEXT,
    pid_namespace     TEXT,
    presence          TEXT NOT NULL,          -- JSON: the lock that the end of its process frees
    version           TEXT NOT NULL,
    heartbeat_ms      INTEGER NOT NULL,
    lease_ms          INTEGER NOT NULL,
    started_at        INTEGER NOT NULL,
    last_heartbeat_at INTEGER NOT NULL,
    -- The same time in milliseconds since boot, so that setting the wall clock does not expire every lease.
    heartbeat_uptime  INTEGER NOT NULL,
    heartbeats        INTEGER NOT NULL DEFAULT 0,
    loop_lag_ms       INTEGER NOT NULL DEFAULT 0,
    stats             TEXT,                   -- JSON: latencies of claims and checkpoints
    ended_at          INTEGER
  ) STRICT;
  CREATE INDEX worker_alive ON worker (id) WHERE ended_at IS NULL;

  -- Counts per run and group, changed in the same transactions as the targets. SQLite has one writer at a time, so
  -- writers do not wait for a row of their own.
  CREATE TABLE run_counters (
    run_id           TEXT NOT NULL,
    group_name       TEXT NOT NULL,
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
    errors           INTEGER NOT NULL DEFAULT 0,
    refused          INTEGER NOT NULL DEFAULT 0,
    last_activity_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, group_name)
  ) STRICT, WITHOUT ROWID;

  -- Claims that recovery ended although the worker was not proven dead. The next heartbeat of that worker subtracts
  -- their crashes again.
  CREATE TABLE lost_claim (
    worker_id     TEXT NOT NULL,
    target_id     TEXT NOT NULL,
    epoch         INTEGER NOT NULL,
    claimed_alone INTEGER NOT NULL,
    parked        INTEGER NOT NULL,           -- 1: the same verdict parked the target
    PRIMARY KEY (worker_id, target_id)
  ) STRICT, WITHOUT ROWID;

  -- One row per role: the worker that does it for all others, until then in milliseconds since boot.
  CREATE TABLE leader (
    role         TEXT PRIMARY KEY,
    worker_id    TEXT NOT NULL,
    boot_id      TEXT,
    until_uptime INTEGER NOT NULL
  ) STRICT;

  -- The time that all processes of a boot use: see docs/decisions/0019-store-clock.md.
  CREATE TABLE clock (
    id          TEXT PRIMARY KEY,             -- of the boot and its time namespace
    offset_ms   INTEGER NOT NULL,             -- added to the milliseconds since boot
    adjusted_ms INTEGER NOT NULL              -- when the offset last changed, in milliseconds since boot
  ) STRICT;

  -- What applies to a source beyond its runs.
  CREATE TABLE source (
    source         TEXT PRIMARY KEY,
    paused_at      INTEGER, paused_because TEXT,  -- null: not paused
    next_start_at  INTEGER, run_now_at INTEGER,  -- when the supervisor that waits starts its command, and that it is to at once; null: none waits
    work_command   TEXT, work_folder TEXT, work_host TEXT  -- how its crawl was last worked on from the command line
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX source_waiting ON source (source) WHERE paused_at IS NOT NULL OR next_start_at IS NOT NULL;

  -- Sessions of crawlers: cookies and other state that a login left, by name.
  CREATE TABLE session (
    id         TEXT PRIMARY KEY,
    source     TEXT NOT NULL,
    name       TEXT NOT NULL,
    data       TEXT NOT NULL,                 -- JSON
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,                       -- null: it does not expire
    UNIQUE (source, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE source_lock (
    source          TEXT PRIMARY KEY,
    worker_id       TEXT,                     -- null: not locked
    since           INTEGER,
    kill_timeout_ms INTEGER NOT NULL,
    unlocking_since INTEGER,
    process_tag     TEXT NOT NULL,            -- marks the processes of the source's command
    gave_up_at      INTEGER, gave_up_because TEXT
  ) STRICT;
  CREATE INDEX source_lock_held ON source_lock (worker_id) WHERE worker_id IS NOT NULL;

  CREATE TABLE execution (
    id          TEXT PRIMARY KEY,
    run_id      TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    worker_id   TEXT NOT NULL,
    host        TEXT NOT NULL,
    command     TEXT NOT NULL,
    output_dir  TEXT NOT NULL,
    log         TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,                      -- null: it has not ended, and the columns below are not set
    exit_code   INTEGER,
    signal      TEXT,
    because     TEXT,
    artifacts   INTEGER,
    peak_memory INTEGER
  ) STRICT;
  CREATE INDEX execution_by_run ON execution (run_id, id);

  CREATE TABLE audit (
    id        INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    source    TEXT NOT NULL,
    run_id    TEXT,                           -- null: an action on the source
    target_id TEXT,
    because   TEXT NOT NULL,
    evidence  TEXT NOT NULL,
    before    TEXT NOT NULL,
    after     TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_by_run ON audit (run_id, id);
  CREATE INDEX audit_by_time ON audit (at);

  -- Every change that was requested over HTTP, also a refused one.
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

  -- The counts of each live run, once a minute, and each second while work is young.
  CREATE TABLE sample (
    at     INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    source TEXT NOT NULL,
    pages  INTEGER NOT NULL,
    items  INTEGER NOT NULL,
    done   REAL NOT NULL,
    ended  INTEGER NOT NULL                   -- 1: taken after the end of the run
  ) STRICT;
  CREATE INDEX sample_by_time   ON sample (at);
  CREATE INDEX sample_by_run    ON sample (run_id, at);
  CREATE INDEX sample_by_source ON sample (source, at);
  CREATE INDEX sample_ended     ON sample (at) WHERE ended = 1;

  CREATE TABLE alert (
    cause        TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,               -- the alert rules that keep it open
    rule         TEXT NOT NULL,
    source       TEXT,
    run_id       TEXT,
    because      TEXT NOT NULL,
    command      TEXT NOT NULL,
    since        INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    resolved_at  INTEGER                      -- null: open
  ) STRICT;
  CREATE INDEX alert_open     ON alert (since, cause) WHERE resolved_at IS NULL;
  CREATE INDEX alert_resolved ON alert (resolved_at)  WHERE resolved_at IS NOT NULL;

  -- The messages about an alert that reached a destination.
  CREATE TABLE alert_delivery (
    cause            TEXT NOT NULL,
    destination      TEXT NOT NULL,
    raised_sent_at   INTEGER,
    resolved_sent_at INTEGER,
    PRIMARY KEY (cause, destination)
  ) STRICT, WITHOUT ROWID;

  -- Rows of users' own tables that an action was taken on.
  CREATE TABLE adopted_row (
    id          TEXT PRIMARY KEY,
    name TEXT NOT NULL, key TEXT NOT NULL, -- of the table in the config; the row's own id
    reopened_at INTEGER, acknowledged_at INTEGER, acknowledged_hash TEXT -- of the row as it was then
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX adopted_row_acknowledged ON adopted_row (name) WHERE acknowledged_at IS NOT NULL;

  -- Changes to rows of users' own tables, recorded before they are made.
  CREATE TABLE adopted_intent (
    id      TEXT PRIMARY KEY,
    at      INTEGER NOT NULL,
    row_id  TEXT NOT NULL,
    name    TEXT NOT NULL,
    key     TEXT NOT NULL,
    entry   TEXT NOT NULL,                    -- JSON: the later audit entry
    reopens INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX adopted_intent_by_time ON adopted_intent (at);

  -- Crawlee's request queues, datasets and key-value stores. The requests of a queue are targets.
  CREATE TABLE crawlee_storage (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('queue', 'dataset', 'records')),
    name        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    UNIQUE (kind, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE crawlee_dataset_entry (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    storage_id TEXT NOT NULL REFERENCES crawlee_storage (id) ON DELETE CASCADE,
    key        TEXT,                          -- null: it has none
    data       TEXT NOT NULL,
    source     TEXT,                          -- of the run that last saved it; null: saved outside of a handler
    run_id     TEXT,
    group_name TEXT NOT NULL DEFAULT '',
    version    INTEGER NOT NULL DEFAULT 1,
    saved_at   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX crawlee_dataset_entry_in_order ON crawlee_dataset_entry (storage_id, seq);
  CREATE INDEX crawlee_dataset_entry_by_source ON crawlee_dataset_entry (source, seq) WHERE source IS NOT NULL;
  CREATE UNIQUE INDEX crawlee_dataset_entry_by_key ON crawlee_dataset_entry (storage_id, key) WHERE key IS NOT NULL;

  CREATE TABLE crawlee_record (
    storage_id   TEXT NOT NULL REFERENCES crawlee_storage (id) ON DELETE CASCADE,
    key          TEXT NOT NULL,
    value        BLOB NOT NULL,
    content_type TEXT NOT NULL,
    PRIMARY KEY (storage_id, key)
  ) STRICT, WITHOUT ROWID;

  -- Sessions of the dashboard.
  CREATE TABLE http_session (
    id         TEXT PRIMARY KEY,              -- SHA-256 of the session cookie, in hex
    token      TEXT NOT NULL,                 -- the name of the token used to log in
    token_mark TEXT NOT NULL,                 -- ends the session when that token is replaced
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`
