import { humanizeDuration } from '../../../core/model/time.ts'
import type { PostgresFacts } from '../../../core/store/inspection.ts'
import { plural } from '../../../presenters/format.ts'
import { note, ok, warning, type Finding } from '../../../presenters/finding.ts'

/** What only a database server has: a way to it, room for sessions, and a clock of its own. */
export function serverFindings(engine: PostgresFacts, workers: number): Finding[] {
  return [poolerFinding(engine), connectionsFinding(engine, workers), clockFinding(engine)]
}

function poolerFinding({ pooled }: PostgresFacts): Finding {
  if (!pooled) return ok('pooler', 'The connection leads straight to the server.')
  return note('pooler', 'A pooler stands between unstuck and the server.', {
    why: 'A session of its own is not to be had there: a dead worker on another host is known by its missing beats alone, after a whole lease.',
    mend: 'Use the direct address of the server where that is too slow.',
  })
}

const SCARCE = 0.25

/** `workers`: how many are at work now. They may have closed connections that they need again soon. */
function connectionsFinding({ connections, perWorker }: PostgresFacts, workers: number): Finding {
  if (!connections) return ok('connections', 'The server does not report how many are left.')
  const { max, used, own } = connections
  const free = Math.max(0, max - used)
  const more = Math.floor(free / perWorker)
  const found = `${free} of ${max} connections are free: enough for ${plural(more, 'more worker process', 'more worker processes')}.`
  const advice = {
    why: `A worker process opens up to ${perWorker}. One that gets none waits and tries again, and looks silent if that lasts.`,
    mend: 'Use fewer workers, close connections that are not needed, raise max_connections or the limit of the database, or put a pooler in between.',
  }
  const [need, left] = [workers * perWorker, Math.max(0, max - used + own)]
  if (need > left) {
    const short = `${plural(workers, 'worker')} at work may need ${need} connections, and other programs leave ${left} of ${max}.`
    return warning('connections', short, advice)
  }
  if (free < perWorker) return warning('connections', found, advice)
  return free < max * SCARCE ? note('connections', found, advice) : ok('connections', found)
}

const SKEW_MAX_MS = 2_000

function clockFinding({ clockAheadMs, roundTripMs }: PostgresFacts): Finding {
  const apartMs = Math.abs(clockAheadMs)
  // Half a round trip is what the measurement itself may be wrong by.
  if (apartMs - roundTripMs / 2 <= SKEW_MAX_MS) {
    return ok(
      'clock',
      `This host and the server agree to ${humanizeDuration(Math.max(1, apartMs))}.`,
    )
  }
  const direction = clockAheadMs > 0 ? 'ahead of' : 'behind'
  return warning(
    'clock',
    `The server's clock is ${humanizeDuration(apartMs)} ${direction} this host's.`,
    {
      why: "Leases go by the server's clock alone, so nobody is taken for dead by this. But journals and logs of this host carry another time than the database.",
      mend: 'Let both set their clocks: `timedatectl set-ntp true`.',
    },
  )
}
