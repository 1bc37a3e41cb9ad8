import { EXIT } from '../../../core/model/exit-codes.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import type { EngineFacts, DatabaseInfo, PostgresFacts } from '../../../core/store/inspection.ts'
import { isPreRelease } from '../../../core/store/schema-version.ts'
import { plural } from '../../../presenters/format.ts'
import { fromError, note, ok, problem, warning, type Finding } from '../../../presenters/finding.ts'

const FIRST_STEPS = '`unstuck demo` shows what it does, `unstuck work crawl.ts` starts your own.'

/** It did not answer, or what is there cannot be used. */
export function unreachedFinding(error: unknown): Finding {
  return fromError('database', error, {
    why: 'Nothing can be started or saved there.',
    mend: 'Bring it back, or correct the address (--db, UNSTUCK_DB or the config); then look again.',
  })
}

/** It could be looked at, but a store refuses to work with it, or lost it on the way. */
export function refusedFinding(error: unknown): Finding {
  return fromError('opening', error, {
    why: 'What the data shows was not looked at, and other commands will end the same way.',
    mend: 'Mend what it names, then look again.',
  })
}

/** No SQLite file. `obstacle`: why none can be made there, if so. */
export function missingFinding(where: string, obstacle: string | null): Finding {
  if (obstacle !== null) {
    return problem('database', `There is no database at ${where}, and none can be made.`, {
      details: [obstacle],
      why: 'Nothing can be started there.',
      mend: 'Correct the address or the permissions of the folder.',
      exitCode: EXIT.unreachable,
    })
  }
  return note('database', `There is no database at ${where} yet.`, {
    why: 'The first start makes it; doctor does not.',
    mend: FIRST_STEPS,
  })
}

const SLOW_MS = 50
const VERY_SLOW_MS = 500

export function reachedFinding(where: string, engine: EngineFacts): Finding {
  const name = engine.name === 'sqlite' ? 'SQLite' : `PostgreSQL ${engine.serverVersion}`
  const found = `${name} at ${where} answers in ${humanizeDuration(Math.max(1, engine.roundTripMs))}.`
  if (engine.roundTripMs < SLOW_MS) return ok('database', found)
  const say = engine.roundTripMs < VERY_SLOW_MS ? note : warning
  return say('database', found, {
    why: 'Each page waits for at least one round trip, and each beat takes one.',
    mend: 'Run the workers nearer to the database, or give it a faster disk.',
  })
}

export function writableFinding(where: string, engine: EngineFacts): Finding {
  const refusal =
    engine.name === 'sqlite'
      ? engine.readOnly && sqliteRefusal(engine.readOnly)
      : serverRefusal(engine)
  if (!refusal) return ok('writable', 'It can be written to.')
  const [because, mend] = refusal
  return problem('writable', `${where} can be read but not written: ${because}.`, {
    why: 'No page can be saved there.',
    mend,
    exitCode: EXIT.unreachable,
  })
}

function sqliteRefusal(reason: string): [string, string] {
  return [reason, 'Give the file and its folder to the user who runs the workers.']
}

function serverRefusal(engine: PostgresFacts): [string, string] | null {
  if (engine.inRecovery)
    return ['the server is a standby in recovery', 'Use the address of the primary.']
  if (engine.readOnly)
    return [
      'sessions start read-only',
      'Take back the setting: `ALTER DATABASE … RESET default_transaction_read_only`.',
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
    return note('schema', 'Nothing of unstuck is in it yet.', {
      why: 'The first start, or `unstuck migrate`, makes the tables; doctor does not.',
      mend: FIRST_STEPS,
    })
  }
  if (version > known) {
    return problem(
      'schema',
      `It has schema version ${version}; this unstuck knows up to ${known}.`,
      {
        why: 'This unstuck will not touch it. What the data shows was not looked at.',
        mend: 'Install the newer unstuck that migrated it.',
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
        mend: 'Use another database, or rename this one: a new one is made. To read it, use the pre-release that made it.',
        exitCode: EXIT.schema,
      },
    )
  }
  if (pending.length > 0) {
    return warning('schema', `It has schema version ${version} of ${known}.`, {
      details: [`${plural(pending.length, 'migration')} pending: ${pending.join(', ')}`],
      why: 'The next command that opens it migrates. What the data shows was not looked at.',
      mend: '`unstuck migrate` does it now.',
    })
  }
  return ok('schema', `Schema version ${version} is the one this unstuck knows.`)
}
