import { EXIT } from '../../../core/model/exit-codes.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import { isPreRelease } from '../../../core/store/schema-version.ts'
import type {
  EngineFacts,
  DatabaseInfo,
  PostgresFacts,
} from '../../../features/inspection/store/database-info.ts'
import { fromError, note, ok, problem, warning, type Finding } from '../../../contracts/finding.ts'
import { plural } from '../../../presenters/format.ts'

const FIRST_STEPS = '`unstuck demo` shows what it does, `unstuck work crawl.ts` starts your own.'

/** The database cannot be reached or used. */
export function unreachedFinding(error: unknown): Finding {
  return fromError('database', error, {
    why: 'Nothing can be started or saved there.',
    fix: 'Start it, or correct the address (--db, UNSTUCK_DB or the config); then check again.',
  })
}

/** The database was read, but a store cannot be opened on it, or lost its connection. */
export function refusedFinding(error: unknown): Finding {
  return fromError('opening', error, {
    why: 'The data was not checked, and other commands will fail in the same way.',
    fix: 'Correct what the error names, then check again.',
  })
}

/** There is no SQLite file. `obstacle`: why it cannot be created, or null. */
export function missingFinding(where: string, obstacle: string | null): Finding {
  if (obstacle !== null) {
    return problem('database', `There is no database at ${where}, and it cannot be created.`, {
      details: [obstacle],
      why: 'Nothing can be started there.',
      fix: 'Correct the address or the permissions of the folder.',
      exitCode: EXIT.unreachable,
    })
  }
  return note('database', `There is no database at ${where} yet.`, {
    why: 'The first start creates it; doctor does not.',
    fix: FIRST_STEPS,
  })
}

const SLOW_MS = 50
const VERY_SLOW_MS = 500

export function reachedFinding(where: string, engine: EngineFacts): Finding {
  const name = engine.name === 'sqlite' ? 'SQLite' : `PostgreSQL ${engine.serverVersion}`
  const found = `${name} at ${where} responds in ${humanizeDuration(Math.max(1, engine.roundTripMs))}.`
  if (engine.roundTripMs < SLOW_MS) return ok('database', found)
  const finding = engine.roundTripMs < VERY_SLOW_MS ? note : warning
  return finding('database', found, {
    why: 'Each page waits for at least one round trip, and each heartbeat takes one.',
    fix: 'Run the workers closer to the database, or use a faster disk.',
  })
}

export function writableFinding(where: string, engine: EngineFacts): Finding {
  const refusal =
    engine.name === 'sqlite'
      ? engine.readOnly && sqliteRefusal(engine.readOnly)
      : serverRefusal(engine)
  if (!refusal) return ok('writable', 'It is writable.')
  const [because, fix] = refusal
  return problem('writable', `${where} can be read but not written: ${because}.`, {
    why: 'No page can be saved there.',
    fix,
    exitCode: EXIT.unreachable,
  })
}

function sqliteRefusal(reason: string): [string, string] {
  return [reason, 'Make the user of the workers the owner of the file and its folder.']
}

function serverRefusal(engine: PostgresFacts): [string, string] | null {
  if (engine.inRecovery)
    return ['the server is a standby in recovery', 'Use the address of the primary.']
  if (engine.readOnly)
    return [
      'sessions start read-only',
      'Reset it: `ALTER DATABASE … RESET default_transaction_read_only`.',
    ]
  if (!engine.mayWrite)
    return [
      'the login lacks the rights',
      'Grant them, or use the login that owns the schema unstuck.',
    ]
  return null
}

export function schemaFinding({ version, known, pending }: DatabaseInfo): Finding {
  if (version === 0) {
    return note('schema', 'It has no tables of Unstuck yet.', {
      why: 'The first start or `unstuck migrate` creates them; doctor does not.',
      fix: FIRST_STEPS,
    })
  }
  if (version > known) {
    return problem(
      'schema',
      `It has schema version ${version}; this unstuck knows up to ${known}.`,
      {
        why: 'This version does not open it. The data was not checked.',
        fix: 'Install the newer unstuck that migrated it.',
        exitCode: EXIT.schema,
      },
    )
  }
  if (isPreRelease(version)) {
    return problem(
      'schema',
      `It was made by a pre-release of unstuck (schema version ${version}).`,
      {
        why: 'No migration leads from it to this version. Nothing in it was read or changed.',
        fix: 'Use another database, or rename this one: a new one is created. To read it, use the pre-release that made it.',
        exitCode: EXIT.schema,
      },
    )
  }
  if (pending.length > 0) {
    return warning('schema', `It has schema version ${version} of ${known}.`, {
      details: [`${plural(pending.length, 'migration')} pending: ${pending.join(', ')}`],
      why: 'The next command that opens it migrates it. The data was not checked.',
      fix: '`unstuck migrate` migrates it now.',
    })
  }
  return ok('schema', `Schema version ${version} is the one this unstuck knows.`)
}

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
