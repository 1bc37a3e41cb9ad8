import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { conformance } from '../conformance/suite.ts'

conformance(sqliteEngine)
