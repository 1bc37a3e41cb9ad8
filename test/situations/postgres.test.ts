import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { SITUATIONS } from './all.ts'
import { testSituations } from './declare-tests.ts'

/** Reading them takes five times as long as on SQLite: half of them, and those that only PostgreSQL can be in. */
const half = Object.entries(SITUATIONS).filter(
  ([, { only }], n) => only === 'postgres' || n % 2 === 0,
)
testSituations(postgresEngine, isLong ? SITUATIONS : Object.fromEntries(half))
