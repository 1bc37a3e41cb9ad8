import { humanizeDuration } from '../../../core/model/time.ts'
import { plural } from '../../../presenters/format.ts'
import { note, ok, warning, type Finding } from '../../../presenters/finding.ts'
import { type PostgresFacts } from '../../../features/inspection/store/database-info.ts'

/** Checks what only a database server has: its connections, a pooler, and its own clock. */
export function serverFindings(engine: PostgresFacts, workers: number): Finding[] {
  return [poolerFinding(engine), connectionsFinding(engine, workers), clockFinding(engine)]
}

function poolerFinding({ pooled }: PostgresFacts): Finding {
  if (!pooled) return ok('pooler', 'The connection to the server is direct.')
  return note('pooler', 'There is a pooler in front of the server.', {
    why: 'A worker has no session of its own there: if it dies on another host, only its missing heartbeats show it, after a whole lease.',
    fix: 'Use the direct address of the server if that is too slow.',
  })
}

const SCARCE = 0.25

/** `workers`: the running ones. They may have closed connections that they need again soon. */
function connectionsFinding({ connections, perWorker }: PostgresFacts, workers: number): Finding {
  if (!connections) return ok('connections', 'The server does not report its limit.')
  const { max, used, own } = connections
  const free = Math.max(0, max - used)
  const more = Math.floor(free / perWorker)
  const found = `${free} of ${max} connections are free: enough for ${plural(more, 'more worker process', 'more worker processes')}.`
  const advice = {
    why: `A worker process opens up to ${perWorker}. One that gets none waits and retries, and misses heartbeats meanwhile.`,
    fix: 'Use fewer workers, close connections that are not needed, raise max_connections or the limit of the database, or use a pooler.',
  }
  const [need, left] = [workers * perWorker, Math.max(0, max - used + own)]
  if (need > left) {
    const short = `${plural(workers, 'worker')} may need ${need} connections, and other programs leave ${left} of ${max}.`
    return warning('connections', short, advice)
  }
  if (free < perWorker) return warning('connections', found, advice)
  return free < max * SCARCE ? note('connections', found, advice) : ok('connections', found)
}

const SKEW_MAX_MS = 2_000

function clockFinding({ clockAheadMs, roundTripMs }: PostgresFacts): Finding {
  const apartMs = Math.abs(clockAheadMs)
  // The measurement is accurate to half a round trip.
  if (apartMs - roundTripMs / 2 <= SKEW_MAX_MS) {
    return ok(
      'clock',
      `The clocks of this host and the server differ by ${humanizeDuration(Math.max(1, apartMs))}.`,
    )
  }
  const direction = clockAheadMs > 0 ? 'ahead of' : 'behind'
  return warning(
    'clock',
    `The server's clock is ${humanizeDuration(apartMs)} ${direction} this host's.`,
    {
      why: "Leases use the server's clock only, so no worker is declared dead because of this. But times in journals and logs of this host differ from those in the database.",
      fix: 'Synchronise both: `timedatectl set-ntp true`.',
    },
  )
}
