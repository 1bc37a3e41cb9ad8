import type { Feature } from '../contracts/feature.ts'
import { adopted } from './adopted/feature.ts'
import { alerts } from './alerts/feature.ts'
import { chaos } from './chaos/feature.ts'
import { commands } from './commands/feature.ts'
import { journal } from './journal/feature.ts'
import { metrics } from './metrics/feature.ts'

/** The only list of features. */
export const FEATURES: readonly Feature[] = [commands, adopted, alerts, journal, metrics, chaos]

/** The sections of features in `unstuck.config.ts`. */
export type { AdoptedOptions } from './adopted/mapping.ts'
export type { AlertOptions, ChannelOptions } from './alerts/config.ts'
