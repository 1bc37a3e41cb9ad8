/** Storages for crawlers that bring their own idea of them: queues by name, datasets in order, records by key. */
export const storages = /* sql */ `
  CREATE TABLE storage (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL CHECK (kind IN ('queue', 'dataset', 'records')),
    name        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    UNIQUE (kind, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE dataset_entry (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    storage_id TEXT NOT NULL REFERENCES storage (id) ON DELETE CASCADE,
    key        TEXT,                        -- null: it has none
    data       TEXT NOT NULL
  ) STRICT;
  CREATE INDEX dataset_entry_in_order ON dataset_entry (storage_id, seq);
  CREATE UNIQUE INDEX dataset_entry_by_key ON dataset_entry (storage_id, key) WHERE key IS NOT NULL;

  CREATE TABLE record (
    storage_id   TEXT NOT NULL REFERENCES storage (id) ON DELETE CASCADE,
    key          TEXT NOT NULL,
    value        BLOB NOT NULL,
    content_type TEXT NOT NULL,
    PRIMARY KEY (storage_id, key)
  ) STRICT, WITHOUT ROWID;
`
