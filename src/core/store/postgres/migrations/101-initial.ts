/**
 * The whole schema: the tables of SQLite in PostgreSQL's own types. Indexed text is COLLATE "C", so that an upgrade of the
 * system's locale cannot corrupt an index.
 */
export const initial = /* sql */ `
  CREATE TABLE unstuck.run (
    id                 uuid PRIMARY KEY,
    source             text COLLATE "C" NOT NULL,
    kind               text NOT NULL CHECK (kind IN ('crawl', 'single')),
    profile            text,                     -- null: standard
    status             text COLLATE "C" NOT NULL,
    policy             jsonb NOT NULL,           -- settings that differ from the defaults
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at         timestamptz,
    resumed_at         timestamptz,
    reopened_at        timestamptz,
    planned_at         timestamptz,
    finished_at        timestamptz,
    acknowledged_at    timestamptz,
    planning_worker_id uuid,                     -- the worker that calls targets() now
    progress_done      float8,
    progress_total     float8,
    resumes            integer NOT NULL DEFAULT 0,
    retries            integer NOT NULL DEFAULT 0,
    retry_of           uuid,
    error              text,
    input              json,                     -- for its command; json, not jsonb, because a NUL must stay in it
    artifacts          integer NOT NULL DEFAULT 0
  );

  -- At most one live run per source, however many processes start one at once.
  CREATE UNIQUE INDEX run_live ON unstuck.run (source) WHERE status IN ('queued', 'running', 'interrupted');
  CREATE INDEX run_by_source ON unstuck.run (source, id);
  CREATE INDEX run_by_status ON unstuck.run (status, id);
  CREATE INDEX run_status ON unstuck.run (status);  -- to count runs: a tenth of the size
  CREATE INDEX run_by_short_id ON unstuck.run (right(id::text, 8));  -- for ids by their last eight digits
  CREATE INDEX run_listed ON unstuck.run (status, source, id);
  CREATE INDEX run_by_age ON unstuck.run (created_at, id);
  CREATE INDEX run_by_end ON unstuck.run (finished_at) WHERE finished_at IS NOT NULL;

  -- The fill factor leaves room in each block, so that a checkpoint's update stays in its block and touches no index. For
  -- the same reason no column that every checkpoint changes is indexed.
  CREATE TABLE unstuck.target (
    id                  uuid PRIMARY KEY,
    run_id              uuid NOT NULL REFERENCES unstuck.run (id),
    key                 text COLLATE "C" NOT NULL,
    group_name          text COLLATE "C" NOT NULL DEFAULT '',
    url                 text,
    data                jsonb,                   -- what the target was planned with
    status              text COLLATE "C" NOT NULL DEFAULT 'planned',
    ready_at            timestamptz,             -- null: at once
    epoch               integer NOT NULL DEFAULT 0,
    claim_id            uuid,
    worker_id           uuid,
    claimed_at          timestamptz,
    claimed_alone       boolean NOT NULL DEFAULT false,  -- its process held no other target
    checkpoint_seq      integer NOT NULL DEFAULT 0,
    page                integer NOT NULL DEFAULT 0,
    page_target         integer,
    next_url            text,
    last_item_id        text,
    cursor              jsonb,
    checkpoint_hash     text,                    -- of the last checkpoint, to recognize a repeated one
    attempts            integer NOT NULL DEFAULT 0,
    errors              integer NOT NULL DEFAULT 0,
    crashes             integer NOT NULL DEFAULT 0,
    crashes_alone       integer NOT NULL DEFAULT 0,
    crashes_since_epoch integer NOT NULL DEFAULT 0,  -- claims up to this epoch no longer count in crashes
    last_activity_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_error          text,
    finished_at         timestamptz,
    acknowledged_at     timestamptz,
    UNIQUE (run_id, key)
  ) WITH (fillfactor = 80);

  -- Claimable targets in claim order. Targets with crashes are claimed separately, one at a time.
  CREATE INDEX target_ready   ON unstuck.target (run_id, ready_at, id) WHERE status = 'planned' AND crashes = 0;
  CREATE INDEX target_crashed ON unstuck.target (run_id, ready_at, id) WHERE status = 'planned' AND crashes > 0;
  CREATE INDEX target_held    ON unstuck.target (worker_id, id)        WHERE status = 'in_progress';
  CREATE INDEX target_listed  ON unstuck.target (run_id, status, id);
  -- Dead letters of all runs. Those that are acknowledged, or are not, are told apart in the index.
  CREATE INDEX target_dead_letter ON unstuck.target (id, acknowledged_at) WHERE status IN ('failed', 'stuck', 'parked');
  -- Counts the acknowledged ones of a run.
  CREATE INDEX target_acknowledged ON unstuck.target (run_id, status) WHERE acknowledged_at IS NOT NULL;

  CREATE TABLE unstuck.item (
    source        text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    key_version   integer NOT NULL,
    url           text,                          -- null: the key is the URL
    data          jsonb NOT NULL,
    version       integer NOT NULL DEFAULT 1,
    changed_in    text NOT NULL,                 -- the checkpoint (claim id and number) that last changed the data
    run_id        uuid NOT NULL,
    group_name    text COLLATE "C" NOT NULL DEFAULT '',  -- of the target that last saved it
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (source, key)
  );
  CREATE INDEX item_by_change ON unstuck.item (source, changed_at);

  CREATE TABLE unstuck.worker (
    id                uuid PRIMARY KEY,
    source            text COLLATE "C" NOT NULL,
    host              text NOT NULL,
    pid               integer NOT NULL,
    start_ticks       bigint,
    boot_id           text,
    pid_namespace     text,
    presence          jsonb NOT NULL,            -- the lock that the end of its process frees
    version           text NOT NULL,
    heartbeat_ms      integer NOT NULL,
    lease_ms          integer NOT NULL,
    started_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeats        integer NOT NULL DEFAULT 0,
    loop_lag_ms       float8 NOT NULL DEFAULT 0,
    asked             uuid[],                    -- the claim ids of its last claim that found targets
    stats             jsonb,                     -- latencies of claims and checkpoints
    ended_at          timestamptz
  ) WITH (fillfactor = 50);
  CREATE INDEX worker_alive ON unstuck.worker (id) WHERE ended_at IS NULL;

  -- Counts per run, group and writer, changed in the same transactions as the targets; a count is the sum over all
  -- writers. A writer is one connection of one worker, so that two never wait for the same row. When the worker ends, its
  -- rows are added to those of the writer ''.
  CREATE TABLE unstuck.run_counters (
    run_id           uuid NOT NULL,
    group_name       text COLLATE "C" NOT NULL,
    writer           text COLLATE "C" NOT NULL,
    planned          integer NOT NULL DEFAULT 0,
    in_progress      integer NOT NULL DEFAULT 0,
    done             integer NOT NULL DEFAULT 0,
    failed           integer NOT NULL DEFAULT 0,
    stuck            integer NOT NULL DEFAULT 0,
    parked           integer NOT NULL DEFAULT 0,
    pages            integer NOT NULL DEFAULT 0,
    items_new        integer NOT NULL DEFAULT 0,
    items_updated    integer NOT NULL DEFAULT 0,
    items_unchanged  integer NOT NULL DEFAULT 0,
    skipped          integer NOT NULL DEFAULT 0,
    errors           integer NOT NULL DEFAULT 0,
    refused          integer NOT NULL DEFAULT 0,
    last_activity_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, group_name, writer)
  ) WITH (fillfactor = 50);
  CREATE INDEX run_counters_by_writer ON unstuck.run_counters (writer);

  -- Claims that recovery ended although the worker was not proven dead. The next heartbeat of that worker subtracts
  -- their crashes again.
  CREATE TABLE unstuck.lost_claim (
    worker_id     uuid NOT NULL,
    target_id     uuid NOT NULL,
    epoch         integer NOT NULL,
    claimed_alone boolean NOT NULL,
    parked        boolean NOT NULL,              -- the same verdict parked the target
    PRIMARY KEY (worker_id, target_id)
  );

  -- One row per role: the worker that does it for all others.
  CREATE TABLE unstuck.leader (
    role      text PRIMARY KEY,
    worker_id uuid NOT NULL,
    until     timestamptz NOT NULL
  ) WITH (fillfactor = 50);

  -- What applies to a source beyond its runs.
  CREATE TABLE unstuck.source (
    source         text COLLATE "C" PRIMARY KEY,
    paused_at      timestamptz, paused_because text,  -- null: not paused
    next_start_at  timestamptz, run_now_at timestamptz,  -- when the supervisor that waits starts its command, and that it is to at once; null: none waits
    work_command   text, work_folder text, work_host text  -- how its crawl was last worked on from the command line
  );
  CREATE INDEX source_waiting ON unstuck.source (source) WHERE paused_at IS NOT NULL OR next_start_at IS NOT NULL;

  -- Sessions of crawlers: cookies and other state that a login left, by name.
  CREATE TABLE unstuck.session (
    id         uuid PRIMARY KEY,
    source     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    data       jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,                      -- null: it does not expire
    UNIQUE (source, name)
  );

  CREATE TABLE unstuck.source_lock (
    source          text COLLATE "C" PRIMARY KEY,
    worker_id       uuid,                        -- null: not locked
    since           timestamptz,
    kill_timeout_ms float8 NOT NULL,
    unlocking_since timestamptz,
    process_tag     text NOT NULL,               -- marks the processes of the source's command
    gave_up_at      timestamptz, gave_up_because text
  );
  CREATE INDEX source_lock_held ON unstuck.source_lock (worker_id) WHERE worker_id IS NOT NULL;

  CREATE TABLE unstuck.execution (
    id          uuid PRIMARY KEY,
    run_id      uuid NOT NULL REFERENCES unstuck.run (id) ON DELETE CASCADE,
    worker_id   uuid NOT NULL,
    host        text NOT NULL,
    command     jsonb NOT NULL,
    output_dir  text NOT NULL,
    log         text NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,                     -- null: it has not ended, and the columns below are not set
    exit_code   integer,
    signal      text,
    because     text,
    artifacts   integer,
    peak_memory float8
  );
  CREATE INDEX execution_by_run ON unstuck.execution (run_id, id);

  CREATE TABLE unstuck.audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor     text NOT NULL,
    action    text NOT NULL,
    source    text NOT NULL,
    run_id    uuid,                              -- null: an action on the source
    target_id uuid,
    because   text NOT NULL,
    evidence  jsonb NOT NULL,
    before    jsonb NOT NULL,
    after     jsonb NOT NULL
  );
  CREATE INDEX audit_by_run ON unstuck.audit (run_id, id);
  CREATE INDEX audit_by_time ON unstuck.audit (at);

  -- Every change that was requested over HTTP, also a refused one.
  CREATE TABLE unstuck.operation (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor     text NOT NULL,
    address   text,
    call      text NOT NULL,
    selection jsonb NOT NULL,
    plan      text,
    status    integer NOT NULL,
    result    text NOT NULL
  );

  -- The counts of each live run, once a minute, and each second while work is young.
  CREATE TABLE unstuck.sample (
    at     timestamptz NOT NULL,
    run_id uuid NOT NULL,
    source text COLLATE "C" NOT NULL,
    pages  integer NOT NULL,
    items  integer NOT NULL,
    done   float8 NOT NULL,
    ended  boolean NOT NULL                      -- taken after the end of the run
  );
  CREATE INDEX sample_by_time   ON unstuck.sample (at);
  CREATE INDEX sample_by_run    ON unstuck.sample (run_id, at);
  CREATE INDEX sample_by_source ON unstuck.sample (source, at);
  CREATE INDEX sample_ended     ON unstuck.sample (at) WHERE ended;

  CREATE TABLE unstuck.alert (
    cause        text COLLATE "C" PRIMARY KEY,
    owner        text NOT NULL,                  -- the alert rules that keep it open
    rule         text NOT NULL,
    source       text,
    run_id       uuid,
    because      text NOT NULL,
    command      text NOT NULL,
    since        timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    resolved_at  timestamptz                     -- null: open
  );
  CREATE INDEX alert_open     ON unstuck.alert (since, cause) WHERE resolved_at IS NULL;
  CREATE INDEX alert_resolved ON unstuck.alert (resolved_at)  WHERE resolved_at IS NOT NULL;

  -- The messages about an alert that reached a destination.
  CREATE TABLE unstuck.alert_delivery (
    cause            text COLLATE "C" NOT NULL,
    destination      text COLLATE "C" NOT NULL,
    raised_sent_at   timestamptz,
    resolved_sent_at timestamptz,
    PRIMARY KEY (cause, destination)
  );

  -- Rows of users' own tables that an action was taken on.
  CREATE TABLE unstuck.adopted_row (
    id          uuid PRIMARY KEY,
    name text NOT NULL, key text NOT NULL, -- of the table in the config; the row's own id
    reopened_at timestamptz, acknowledged_at timestamptz, acknowledged_hash text -- of the row as it was then
  );
  CREATE INDEX adopted_row_acknowledged ON unstuck.adopted_row (name) WHERE acknowledged_at IS NOT NULL;

  -- Changes to rows of users' own tables, recorded before they are made.
  CREATE TABLE unstuck.adopted_intent (
    id      uuid PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    row_id  uuid NOT NULL,
    name    text NOT NULL,
    key     text NOT NULL,
    entry   jsonb NOT NULL,                      -- the later audit entry
    reopens boolean NOT NULL
  );
  CREATE INDEX adopted_intent_by_time ON unstuck.adopted_intent (at);

  -- Crawlee's request queues, datasets and key-value stores. The requests of a queue are targets.
  CREATE TABLE unstuck.crawlee_storage (
    id          uuid PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL CHECK (kind IN ('queue', 'dataset', 'records')),
    name        text COLLATE "C" NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    modified_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    accessed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (kind, name)
  );

  CREATE TABLE unstuck.crawlee_dataset_entry (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    storage_id uuid NOT NULL REFERENCES unstuck.crawlee_storage (id) ON DELETE CASCADE,
    key        text COLLATE "C",                 -- null: it has none
    data       json NOT NULL,                    -- json, not jsonb, so that it is returned unchanged
    source     text COLLATE "C",                 -- of the run that last saved it; null: saved outside of a handler
    run_id     uuid,
    group_name text COLLATE "C" NOT NULL DEFAULT '',
    version    integer NOT NULL DEFAULT 1,
    saved_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE INDEX crawlee_dataset_entry_in_order ON unstuck.crawlee_dataset_entry (storage_id, seq);
  CREATE INDEX crawlee_dataset_entry_by_source ON unstuck.crawlee_dataset_entry (source, seq) WHERE source IS NOT NULL;
  CREATE UNIQUE INDEX crawlee_dataset_entry_by_key ON unstuck.crawlee_dataset_entry (storage_id, key) WHERE key IS NOT NULL;

  CREATE TABLE unstuck.crawlee_record (
    storage_id   uuid NOT NULL REFERENCES unstuck.crawlee_storage (id) ON DELETE CASCADE,
    key          text COLLATE "C" NOT NULL,
    value        bytea NOT NULL,
    content_type text NOT NULL,
    PRIMARY KEY (storage_id, key)
  );

  -- Sessions of the dashboard.
  CREATE TABLE unstuck.http_session (
    id         text COLLATE "C" PRIMARY KEY,     -- SHA-256 of the session cookie, in hex
    token      text NOT NULL,                    -- the name of the token used to log in
    token_mark text NOT NULL,                    -- ends the session when that token is replaced
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
  );
`
