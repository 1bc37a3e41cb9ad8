/** What a feature's own statements on PostgreSQL are made of. */
export { recordAuditEntries } from './audit.ts'
export { ADD_ON_CONFLICT } from './counters.ts'
export { ms, sql, type Connection, type Database, type Sql } from './database.ts'
export { codeOf, isDataError } from './errors.ts'
export { stripNulJson } from './strip-nul.ts'
export { internalFunctions, writerOf } from './user-transaction.ts'
