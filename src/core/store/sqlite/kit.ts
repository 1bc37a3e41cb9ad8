/** What a feature's own statements on SQLite are made of. */
export { recordAudit } from './audit.ts'
export { addCounts } from './counters.ts'
export { sql, type Connection, type Database, type Params, type Sql } from './database.ts'
export { readJson } from './lists.ts'
