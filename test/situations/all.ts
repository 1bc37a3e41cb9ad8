import { ALERTS } from './alerts.ts'
import { ADOPTED } from './adopted.ts'
import { ADOPTED_TARGETS } from './adopted-targets.ts'
import { COMMANDS } from './commands.ts'
import { PAUSED } from './paused.ts'
import { POLICIES } from './policies.ts'
import type { Situations } from './situation.ts'
import { TARGETS } from './targets.ts'
import { WAITING } from './waiting.ts'
import { WORKERS } from './workers.ts'

/** At least fifty; a situation that was ever reported in two ways belongs here. */
export const SITUATIONS: Situations = {
  ...WORKERS,
  ...WAITING,
  ...POLICIES,
  ...TARGETS,
  ...COMMANDS,
  ...ALERTS,
  ...PAUSED,
  ...ADOPTED,
  ...ADOPTED_TARGETS,
}
