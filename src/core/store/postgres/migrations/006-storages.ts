/** Storages for crawlers that bring their own idea of them: queues by name, datasets in order, records by key. */
export const storages = /* sql */ `
  CREATE TABLE unstuck.storage (
    id          uuid PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL CHECK (kind IN ('queue', 'dataset', 'records')),
    name        text COLLATE "C" NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    modified_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    accessed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (kind, name)
  );

  CREATE TABLE unstuck.dataset_entry (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    storage_id uuid NOT NULL REFERENCES unstuck.storage (id) ON DELETE CASCADE,
    key        text COLLATE "C",            -- null: it has none
    data       json NOT NULL                -- json, not jsonb: it is given back as it came
  );
  CREATE INDEX dataset_entry_in_order ON unstuck.dataset_entry (storage_id, seq);
  CREATE UNIQUE INDEX dataset_entry_by_key ON unstuck.dataset_entry (storage_id, key) WHERE key IS NOT NULL;

  CREATE TABLE unstuck.record (
    storage_id   uuid NOT NULL REFERENCES unstuck.storage (id) ON DELETE CASCADE,
    key          text COLLATE "C" NOT NULL,
    value        bytea NOT NULL,
    content_type text NOT NULL,
    PRIMARY KEY (storage_id, key)
  );
`
