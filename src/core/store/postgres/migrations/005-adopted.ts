/** What is remembered of rows in users' own tables: what is about to be done to one, and what people said of it. */
export const adopted = /* sql */ `
  CREATE TABLE unstuck.adopted_row (
    id          uuid PRIMARY KEY,
    name        text NOT NULL,              -- of the table in the config
    key         text NOT NULL,              -- the row's own id
    reopened_at timestamptz
  );
  -- People type the last eight digits.
  CREATE INDEX adopted_row_by_short_id ON unstuck.adopted_row (right(id::text, 8));

  CREATE TABLE unstuck.adopted_intent (
    id      uuid PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    row_id  uuid NOT NULL,
    name    text NOT NULL,
    key     text NOT NULL,
    entry   jsonb NOT NULL,                 -- as it will stand in the trail
    reopens boolean NOT NULL
  );
  CREATE INDEX adopted_intent_by_time ON unstuck.adopted_intent (at);
`
