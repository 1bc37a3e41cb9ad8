/** What is remembered of rows in users' own tables: what is about to be done to one, and what people said of it. */
export const adopted = /* sql */ `
  CREATE TABLE adopted_row (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,              -- of the table in the config
    key         TEXT NOT NULL,              -- the row's own id
    reopened_at INTEGER
  ) STRICT, WITHOUT ROWID;
  -- People type the last eight digits.
  CREATE INDEX adopted_row_by_short_id ON adopted_row (substr(id, -8));

  CREATE TABLE adopted_intent (
    id      TEXT PRIMARY KEY,
    at      INTEGER NOT NULL,
    row_id  TEXT NOT NULL,
    name    TEXT NOT NULL,
    key     TEXT NOT NULL,
    entry   TEXT NOT NULL,                  -- JSON, as it will stand in the trail
    reopens INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX adopted_intent_by_time ON adopted_intent (at);
`
