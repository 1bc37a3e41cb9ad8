import type {
  EngineFacts,
  Inspection,
  PostgresFacts,
  SqliteFacts,
} from '../../../core/store/inspection.ts'
import { note, ok, problem, warning, type Finding } from '../../../presenters/finding.ts'

/** Whether a page that was acknowledged survives a power cut. `own`: as set on a store's connections, once it is open. */
export function durabilityFinding(
  engine: EngineFacts,
  own: Inspection['durability'] | null,
): Finding {
  const settings = Object.entries(own ?? {}).map(([name, value]) => `${name} = ${value}`)
  return engine.name === 'sqlite'
    ? sqliteDurability(engine, settings)
    : postgresDurability(engine, settings)
}

function sqliteDurability({ journalMode }: SqliteFacts, settings: readonly string[]): Finding {
  if (journalMode === 'wal') {
    return ok('durability', `${settings.join(', ') || 'WAL'}: a saved page survives a power cut.`)
  }
  return warning('durability', `The file was in journal mode ${journalMode}, not WAL.`, {
    details:
      settings.length > 0 ? [`now, on unstuck's own connections: ${settings.join(', ')}`] : [],
    why: 'Each store that opens it puts it back to WAL, so another program has changed it. While it is not, readers and writers block each other.',
    mend: 'Find the program that opens the file and sets its journal_mode, and stop that.',
  })
}

function postgresDurability(engine: PostgresFacts, settings: readonly string[]): Finding {
  const { fsync, fullPageWrites, synchronousCommit, pooled } = engine
  if (fsync === 'off') {
    return problem('durability', 'The server runs with fsync off.', {
      why: 'A power cut or a crash of its machine can destroy the whole database, saved pages included.',
      mend: '`ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()`, then a backup.',
    })
  }
  if (synchronousCommit === 'off') {
    const advice = {
      details: settings.length > 0 ? [`on unstuck's own connections: ${settings.join(', ')}`] : [],
      mend: '`ALTER DATABASE … SET synchronous_commit = on`.',
    }
    return pooled
      ? problem(
          'durability',
          'The server has synchronous_commit off, and a pooler is in between.',
          {
            ...advice,
            why: 'It can lose pages that it acknowledged, and unstuck cannot turn it on for itself there.',
          },
        )
      : warning('durability', 'The server has synchronous_commit off.', {
          ...advice,
          why: 'unstuck turns it on for its own connections; what other programs write can be lost.',
        })
  }
  if (fullPageWrites === 'off') {
    return warning('durability', 'The server runs with full_page_writes off.', {
      why: 'A power cut in the middle of a write can leave torn pages, unless the file system rules them out.',
      mend: '`ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()`.',
    })
  }
  if (synchronousCommit === null || fsync === null) {
    return note('durability', 'The server does not tell how it keeps what it acknowledges.', {
      why: 'It is compatible with PostgreSQL, and its own documentation says what survives a power cut.',
    })
  }
  return ok(
    'durability',
    `synchronous_commit = ${synchronousCommit}, fsync = ${fsync}: a saved page survives a power cut.`,
  )
}
