import { inWords } from '../../../model/time.ts'
import type { PostgresFacts } from '../../../store/inspection.ts'
import { note, ok, warning, type Finding } from './finding.ts'

/** What only a database server has: a way to it, room for sessions, and a clock of its own. */
export function serverFindings(engine: PostgresFacts): Finding[] {
  return [poolerFinding(engine), connectionsFinding(engine), clockFinding(engine)]
}

function poolerFinding({ pooled }: PostgresFacts): Finding {
  if (!pooled) return ok('pooler', 'The connection leads straight to the server.')
  return note('pooler', 'A pooler stands between unstuck and the server.', {
    why: 'A session of its own is not to be had there: a dead worker on another host is known by its missing beats alone, after a whole lease.',
    mend: 'Use the direct address of the server where that is too slow.',
  })
}

/** A worker process has ten connections, its heartbeat two, its presence one. */
const PER_WORKER = 13
const SCARCE = 0.25

function connectionsFinding({ connections }: PostgresFacts): Finding {
  if (!connections) return ok('connections', 'The server does not tell how many are left.')
  const { max, used } = connections
  const free = Math.max(0, max - used)
  const found = `${free} of ${max} connections are free.`
  const advice = {
    why: `A worker process takes up to ${PER_WORKER}. Who finds none waits and tries again, and looks silent if that lasts.`,
    mend: 'Raise max_connections or the limit of the database, close what nobody needs, or use fewer workers.',
  }
  if (free < PER_WORKER) return warning('connections', found, advice)
  return free < max * SCARCE ? note('connections', found, advice) : ok('connections', found)
}

const SKEW_MAX_MS = 2_000

function clockFinding({ clockAheadMs, roundTripMs }: PostgresFacts): Finding {
  const apartMs = Math.abs(clockAheadMs)
  // Half a round trip is what the measurement itself may be wrong by.
  if (apartMs - roundTripMs / 2 <= SKEW_MAX_MS) {
    return ok('clock', `This host and the server agree to ${inWords(Math.max(1, apartMs))}.`)
  }
  const direction = clockAheadMs > 0 ? 'ahead of' : 'behind'
  return warning('clock', `The server's clock is ${inWords(apartMs)} ${direction} this host's.`, {
    why: "Leases go by the server's clock alone, so nobody is taken for dead by this. But journals and logs of this host carry another time than the database.",
    mend: 'Let both set their clocks: `timedatectl set-ntp true`.',
  })
}
