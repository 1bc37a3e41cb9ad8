/** What a feature's own statements on PostgreSQL are made of. */
export { parseAddress, withDatabase, type Address } from './address.ts'
export { recordAuditEntries } from './audit.ts'
export { checkpointRow } from './checkpoints.ts'
export { connectTo } from './connect.ts'
export { ADD_ON_CONFLICT, SUMS } from './counters.ts'
export {
  Connection,
  CONNECTIONS_DEFAULT,
  HEARTBEAT_CONNECTIONS,
  ms,
  sql,
  timestamp,
  type Database,
  type Sql,
} from './database.ts'
export { codeOf, isConnectionError, isDataError, storeError } from './errors.ts'
export { foundVersion, MIGRATIONS, SCHEMA_VERSION } from './migrate.ts'
export { itemJson } from './one-page.ts'
export { isPooled } from './probe.ts'
export { LIVE } from './runs.ts'
export { refuseOldServer, SERVER_VERSION, type ServerVersion } from './server-version.ts'
export { stripNul, stripNulJson } from './strip-nul.ts'
export { closeClient } from './timeouts.ts'
export { internalFunctions, writerOf } from './user-transaction.ts'
