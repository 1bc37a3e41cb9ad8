import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { conformance } from '../conformance/suite.ts'

conformance(postgresEngine)
