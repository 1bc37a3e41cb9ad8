// Loaded into worker processes before anything else (--import): ends the process by SIGKILL at the n-th statement of a
// phase, before it, on its way, or after it.
import { subscribe } from 'node:diagnostics_channel'
import type { StatementMoment } from '../../src/core/store/statement-channel.ts'

/** Which statements make which phase. */
const PHASES: Readonly<Record<string, RegExp>> = {
  claim: /^claim/,
  commit: /^checkpoint/,
  recovery: /^recover/,
}

const [phase, nth] = (process.env['CRASH_FATE'] ?? '').split(':')
const names = PHASES[phase ?? '']
if (names) {
  let left = Number(nth)
  subscribe('unstuck:statement', (message) => {
    const { name } = message as StatementMoment
    if (names.test(name) && --left <= 0) process.kill(process.pid, 'SIGKILL')
  })
}
