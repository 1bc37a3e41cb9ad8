/** What a feature's own statements on SQLite are made of. */
export { recordAudit } from './audit.ts'
export { sql, type Connection, type Database } from './database.ts'
export { readJson } from './lists.ts'
