/**
 * Runs, targets, items, workers and their books: the tables of SQLite in PostgreSQL's own types. Indexed text is
 * COLLATE "C", so that an upgrade of the system's locale cannot spoil an index.
 */
export const heart = /* sql */ `
  CREATE TABLE unstuck.run (
    id             uuid PRIMARY KEY,
    source         text COLLATE "C" NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('crawl', 'single')),
    status         text COLLATE "C" NOT NULL,
    policy         jsonb NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at     timestamptz,
    planned_at     timestamptz,
    finished_at    timestamptz,
    planner        uuid,
    progress_done  float8,
    progress_total float8,
    resumes        integer NOT NULL DEFAULT 0,
    retries        integer NOT NULL DEFAULT 0,
    retry_of       uuid,
    error          text
  );

  -- The guard: at most one live run per source, whoever asks and however many at once.
  CREATE UNIQUE INDEX run_live ON unstuck.run (source) WHERE status IN ('queued', 'running', 'interrupted');
  CREATE INDEX run_by_source ON unstuck.run (source, id);
  CREATE INDEX run_by_status ON unstuck.run (status, id);
  -- People type the last eight digits.
  CREATE INDEX run_by_short_id ON unstuck.run (right(id::text, 8));

  -- Room is left in each block, so that a page's update stays in it and touches no index. For the same reason
  -- no column that every page changes is indexed.
  CREATE TABLE unstuck.target (
    id               uuid PRIMARY KEY,
    run_id           uuid NOT NULL REFERENCES unstuck.run (id),
    key              text COLLATE "C" NOT NULL,
    grp              text COLLATE "C" NOT NULL DEFAULT '',
    url              text,
    status           text COLLATE "C" NOT NULL DEFAULT 'planned',
    ready_at         timestamptz,              -- null: at once
    epoch            integer NOT NULL DEFAULT 0,
    claim_id         uuid,
    worker_id        uuid,
    claimed_at       timestamptz,
    alone            boolean NOT NULL DEFAULT false,
    seq              integer NOT NULL DEFAULT 0,
    page             integer NOT NULL DEFAULT 0,
    page_target      integer,
    next_url         text,
    last_item_id     text,
    cursor           jsonb,
    page_hash        text,
    attempts         integer NOT NULL DEFAULT 0,
    errors           integer NOT NULL DEFAULT 0,
    crashes          integer NOT NULL DEFAULT 0,
    crashes_alone    integer NOT NULL DEFAULT 0,
    last_activity_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_error       text,
    finished_at      timestamptz,
    UNIQUE (run_id, key)
  ) WITH (fillfactor = 80);

  -- What can be claimed, in the order it is claimed; targets that took a worker down stand apart.
  CREATE INDEX target_ready   ON unstuck.target (run_id, ready_at, id) WHERE status = 'planned' AND crashes = 0;
  CREATE INDEX target_suspect ON unstuck.target (run_id, ready_at, id) WHERE status = 'planned' AND crashes > 0;
  CREATE INDEX target_held    ON unstuck.target (worker_id, id)        WHERE status = 'in_progress';
  CREATE INDEX target_listed  ON unstuck.target (run_id, status, id);

  CREATE TABLE unstuck.item (
    source        text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    key_version   integer NOT NULL,
    url           text,                        -- null: the key is the address
    data          jsonb NOT NULL,
    version       integer NOT NULL DEFAULT 1,
    changed_in    text NOT NULL,               -- the checkpoint (claim id and number) that last changed the data
    run_id        uuid NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (source, key)
  );

  CREATE TABLE unstuck.worker (
    id            uuid PRIMARY KEY,
    source        text COLLATE "C" NOT NULL,
    host          text NOT NULL,
    pid           integer NOT NULL,
    start_ticks   bigint,
    boot_id       text,
    pid_namespace text,
    presence      jsonb NOT NULL,
    version       text NOT NULL,
    heartbeat_ms  integer NOT NULL,
    lease_ms      integer NOT NULL,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_beat_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    beats         integer NOT NULL DEFAULT 0,
    loop_lag_ms   float8 NOT NULL DEFAULT 0,
    asked         uuid[],                      -- the claim ids it was last given targets for
    ended_at      timestamptz
  ) WITH (fillfactor = 50);
  CREATE INDEX worker_alive ON unstuck.worker (id) WHERE ended_at IS NULL;

  -- The books: changes by one writer to one run and group. The sum over all rows is the count. A writer is one
  -- connection of one worker, so that no two wait for each other; when the worker ends, its rows are folded into
  -- those of the writer ''.
  CREATE TABLE unstuck.tally (
    run_id           uuid NOT NULL,
    grp              text COLLATE "C" NOT NULL,
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
    refused          integer NOT NULL DEFAULT 0,
    last_activity_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, grp, writer)
  ) WITH (fillfactor = 50);
  CREATE INDEX tally_by_writer ON unstuck.tally (writer);

  CREATE TABLE unstuck.audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor     text NOT NULL,
    action    text NOT NULL,
    source    text NOT NULL,
    run_id    uuid NOT NULL,
    target_id uuid,
    because   text NOT NULL,
    evidence  jsonb NOT NULL,
    before    jsonb NOT NULL,
    after     jsonb NOT NULL
  );
  CREATE INDEX audit_by_run ON unstuck.audit (run_id, id);

  -- Whose turn it is to sweep.
  CREATE TABLE unstuck.turn (
    name      text PRIMARY KEY,
    worker_id uuid NOT NULL,
    until     timestamptz NOT NULL
  ) WITH (fillfactor = 50);
`
