import { closest } from '../../../core/model/closest.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { cron } from './cron.ts'
import { docker } from './docker.ts'
import type { Supervisor } from './facts.ts'
import { kubernetes } from './kubernetes.ts'
import { pm2 } from './pm2.ts'
import { systemd } from './systemd.ts'
import { windows } from './windows.ts'

const SUPERVISORS = { pm2, systemd, docker, kubernetes, cron, windows }

export type SupervisorName = keyof typeof SUPERVISORS
export const SUPERVISOR_NAMES = Object.keys(SUPERVISORS) as SupervisorName[]

export function supervisor(name: SupervisorName): Supervisor {
  return SUPERVISORS[name]
}

/** As written behind `--for`, each once. */
export function readSupervisors(given: readonly string[]): SupervisorName[] {
  for (const name of given) {
    if ((SUPERVISOR_NAMES as string[]).includes(name)) continue
    const hint = closest(name, SUPERVISOR_NAMES)
    throw new UsageError(
      `--for takes ${SUPERVISOR_NAMES.join(', ')}, not ${JSON.stringify(name)}. ` +
        (hint
          ? `Did you mean ${hint}?`
          : 'A folder is written before it: `unstuck init FOLDER --for …`.'),
    )
  }
  return [...new Set(given)] as SupervisorName[]
}
