import type { Engine, TestDatabase } from './test-database.ts'

/** Makes what a pre-release left in a database: its schema versions, and a run. Returns a function that reads it all. */
export async function createPreRelease(
  db: TestDatabase,
  engine: Engine,
): Promise<() => Promise<unknown>> {
  const [migration, run] = [db.table('migration'), db.table('run')]
  const schema = engine.name === 'sqlite' ? '' : 'CREATE SCHEMA unstuck;'
  await db.raw(/* sql */ `
    ${schema}
    CREATE TABLE ${migration} (number integer PRIMARY KEY, lowest integer NOT NULL);
    CREATE TABLE ${run} (id text PRIMARY KEY, source text NOT NULL, planner text);
    INSERT INTO ${migration} VALUES (1, 1), (8, 1);
    INSERT INTO ${run} VALUES ('r', 'shop', 'w');
  `)
  const catalogue =
    engine.name === 'sqlite'
      ? `SELECT name, sql FROM sqlite_schema ORDER BY name`
      : /* sql */ `SELECT table_name, column_name, data_type FROM information_schema.columns
                    WHERE table_schema = 'unstuck' ORDER BY table_name, column_name`
  const texts = [catalogue, `SELECT * FROM ${migration} ORDER BY number`, `SELECT * FROM ${run}`]
  return async () => await Promise.all(texts.map((text) => db.raw(text)))
}
