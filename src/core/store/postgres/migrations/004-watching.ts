/** What those who look on need: how it went over time, what people were told and did, and lists that stay quick. */
export const watching = /* sql */ `
  CREATE INDEX run_listed ON unstuck.run (status, source, id);
  CREATE INDEX run_by_age ON unstuck.run (created_at, id);
  CREATE INDEX run_by_end ON unstuck.run (finished_at) WHERE finished_at IS NOT NULL;
  -- What waits for a person, of all runs.
  CREATE INDEX target_troubled ON unstuck.target (id) WHERE status IN ('failed', 'stuck', 'parked');

  -- How far each live run was, minute by minute.
  CREATE TABLE unstuck.sample (
    at     timestamptz NOT NULL,
    run_id uuid NOT NULL,
    source text COLLATE "C" NOT NULL,
    pages  integer NOT NULL,
    items  integer NOT NULL,
    done   float8 NOT NULL,
    ended  boolean NOT NULL                    -- taken after the run's end
  );
  CREATE INDEX sample_by_time   ON unstuck.sample (at);
  CREATE INDEX sample_by_run    ON unstuck.sample (run_id, at);
  CREATE INDEX sample_by_source ON unstuck.sample (source, at);
  CREATE INDEX sample_ended     ON unstuck.sample (at) WHERE ended;

  CREATE TABLE unstuck.alert (
    cause        text COLLATE "C" PRIMARY KEY,
    owner        text NOT NULL,                -- the rules by which it is open
    rule         text NOT NULL,
    source       text,
    run_id       uuid,
    because      text NOT NULL,
    command      text NOT NULL,
    since        timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    resolved_at  timestamptz                   -- null: open
  );
  CREATE INDEX alert_open     ON unstuck.alert (since, cause) WHERE resolved_at IS NULL;
  CREATE INDEX alert_resolved ON unstuck.alert (resolved_at)  WHERE resolved_at IS NOT NULL;
  -- Who was told of which alert.
  CREATE TABLE unstuck.telling (
    cause       text COLLATE "C" NOT NULL,
    destination text COLLATE "C" NOT NULL,
    sent_at     timestamptz,
    ended_at    timestamptz,                   -- told that it is over
    PRIMARY KEY (cause, destination)
  );

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

  -- Last: from here to the end no worker can beat.
  ALTER TABLE unstuck.worker ADD COLUMN stats jsonb;
`
