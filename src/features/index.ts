import type { Feature } from '../contracts/feature.ts'
import { adopted } from './adopted/feature.ts'
import { alerts } from './alerts/feature.ts'
import { chaos } from './chaos/feature.ts'
import { commands } from './commands/feature.ts'
import { journal } from './journal/feature.ts'
import type { AdoptedConfig } from './adopted/config.ts'
import type { AlertsConfig } from './alerts/config.ts'

/** The only list of features. */
export const FEATURES: readonly Feature[] = [commands, adopted, alerts, journal, chaos]

/** What features add to `unstuck.config.ts`. */
export type FeatureConfig = AlertsConfig & AdoptedConfig
