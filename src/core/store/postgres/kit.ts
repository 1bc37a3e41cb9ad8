/** What a feature's own statements on PostgreSQL are made of. */
export { recordAuditEntries } from './audit.ts'
export { ms, sql, type Connection, type Database } from './database.ts'
export { stripNulJson } from './strip-nul.ts'
