import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { SITUATIONS } from './all.ts'
import { testSituations } from './declare-tests.ts'

testSituations(postgresEngine, SITUATIONS)
