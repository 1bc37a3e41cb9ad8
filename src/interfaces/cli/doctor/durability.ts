import type { Inspection } from '../../../features/inspection/store/store.ts'
import { note, ok, problem, warning, type Finding } from '../../../presenters/finding.ts'
import {
  type EngineFacts,
  type PostgresFacts,
  type SqliteFacts,
} from '../../../features/inspection/store/database-info.ts'

/** Checks that a committed page survives a power failure. `own`: the settings of a store's connections, if one is open. */
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
    return ok(
      'durability',
      `${settings.join(', ') || 'WAL'}: a saved page survives a power failure.`,
    )
  }
  return warning('durability', `The file was in journal mode ${journalMode}, not WAL.`, {
    details:
      settings.length > 0 ? [`now, on unstuck's own connections: ${settings.join(', ')}`] : [],
    why: 'Each store that opens it sets WAL, so another program has changed it. Without WAL, readers and writers block each other.',
    fix: 'Find the program that sets the journal_mode of the file.',
  })
}

function postgresDurability(engine: PostgresFacts, settings: readonly string[]): Finding {
  const { fsync, fullPageWrites, synchronousCommit, pooled } = engine
  if (fsync === 'off') {
    return problem('durability', 'The server runs with fsync off.', {
      why: 'A power failure or a crash of its machine can destroy the whole database, saved pages included.',
      fix: '`ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()`, then a backup.',
    })
  }
  if (synchronousCommit === 'off') {
    const advice = {
      details: settings.length > 0 ? [`on unstuck's own connections: ${settings.join(', ')}`] : [],
      fix: '`ALTER DATABASE … SET synchronous_commit = on`.',
    }
    return pooled
      ? problem(
          'durability',
          'The server has synchronous_commit off, and there is a pooler in front of it.',
          {
            ...advice,
            why: 'It can lose committed pages, and Unstuck cannot turn the setting on through a pooler.',
          },
        )
      : warning('durability', 'The server has synchronous_commit off.', {
          ...advice,
          why: 'Unstuck turns it on for its own connections; writes of other programs can be lost.',
        })
  }
  if (fullPageWrites === 'off') {
    return warning('durability', 'The server runs with full_page_writes off.', {
      why: 'A power failure during a write can leave torn pages, unless the file system prevents them.',
      fix: '`ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()`.',
    })
  }
  if (synchronousCommit === null || fsync === null) {
    return note('durability', 'The server does not report its durability settings.', {
      why: 'It is compatible with PostgreSQL; its own documentation describes what survives a power failure.',
    })
  }
  return ok(
    'durability',
    `synchronous_commit = ${synchronousCommit}, fsync = ${fsync}: a saved page survives a power failure.`,
  )
}
