import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SITUATIONS } from './all.ts'
import { testSituations } from './declare-tests.ts'

testSituations(sqliteEngine, SITUATIONS)
