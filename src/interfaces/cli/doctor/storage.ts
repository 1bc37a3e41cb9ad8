import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { messageOf } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import type { BlockedWal } from '../../../core/store/sqlite/wal.ts'
import type {
  EngineFacts,
  SqliteFacts,
  PostgresFacts,
} from '../../../features/inspection/store/database-info.ts'
import type { LeftoverLock, Inspection } from '../../../features/inspection/store/store.ts'
import { dataFolderPath } from '../../../lib/files/data-folder.ts'
import { firstOf, note, ok, problem, warning, type Finding } from '../../../contracts/finding.ts'
import { plural } from '../../../presenters/format.ts'

const KB = 1_000
const MB = 1_000_000
const GB = 1_000_000_000

/** `4.2 GB`, in powers of ten as disks are sold. */
export function formatBytes(bytes: number): string {
  if (bytes < KB) return `${bytes} bytes`
  const [unit, name] = bytes < MB ? [KB, 'kB'] : bytes < GB ? [MB, 'MB'] : [GB, 'GB']
  const value = bytes / unit
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${name}`
}

export function fileSystemFinding({ network }: SqliteFacts): Finding {
  if (network === null) return ok('file-system', 'The database is on a local disk.')
  return problem('file-system', `The database is on a network file system (${network}).`, {
    why: 'Its locks do not reliably end with their process, so the death of a worker cannot be proven.',
    fix: 'Put the file on a local disk, or use PostgreSQL for workers on many machines.',
    exitCode: EXIT.unreachable,
  })
}

export function sizeFinding(engine: EngineFacts): Finding {
  if (engine.bytes === null)
    return ok('size', 'The server does not report the size of the database.')
  if (engine.name === 'postgres')
    return ok('size', `The database has ${formatBytes(engine.bytes)}.`)
  return ok(
    'size',
    `The database has ${formatBytes(engine.bytes)}, its -wal file ${formatBytes(engine.walBytes)}.`,
  )
}

export function walFinding({ path }: SqliteFacts, blocked: BlockedWal | null): Finding {
  if (!blocked) return ok('wal', 'The -wal file is copied back into the database.')
  const { bytes, pages, left } = blocked
  return warning(
    'wal',
    `The -wal file has ${formatBytes(bytes)}: ${left} of its ${pages} pages cannot be copied back.`,
    {
      why: 'Another program keeps a read transaction open. Until it ends, the file grows and reads get slower.',
      fix: `Close database browsers, scripts and backups: \`fuser -v ${path}\` names them.`,
    },
  )
}

/** A disk with the database or the journals. */
export type Volume = {
  /** `the database`, `the journals`, or both. */
  readonly holds: string
  readonly folder: string
  readonly free: number
  readonly total: number
}

const FREE_MIN = 100 * MB
const FREE_LOW = GB
const FREE_LOW_SHARE = 0.05

export function diskFinding({ holds, folder, free, total }: Volume): Finding {
  const share = total > 0 ? free / total : 1
  const percent = share < 0.01 ? 'less than 1 %' : `${Math.floor(share * 100)} %`
  const found = `${formatBytes(free)} free (${percent}) where ${holds} are: ${folder}`
  const advice = {
    why: 'On a full disk work waits until there is space; saved pages are not lost.',
    fix: 'Free space, or move them to a larger disk.',
  }
  if (free < FREE_MIN) return problem('disk', found, advice)
  if (free < FREE_LOW || share < FREE_LOW_SHARE) return warning('disk', found, advice)
  return ok('disk', found)
}

export function unreadableDiskFinding(error: unknown): Finding {
  return note('disk', `The free space is unknown: ${messageOf(error)}`, {
    why: 'On a full disk work waits until there is space.',
  })
}

export function lockFilesFinding(leftover: readonly LeftoverLock[]): Finding {
  if (leftover.length === 0) return ok('lock-files', 'No lock file is left behind.')
  const details = leftover.map(
    ({ path, fault }) =>
      `${path}: ${fault === 'worker-ended' ? 'its worker has ended' : 'its worker is unknown'}`,
  )
  return note('lock-files', `${plural(leftover.length, 'lock file')} left behind.`, {
    details: firstOf(details),
    why: 'They are harmless: a lock counts only while its process holds it. doctor deletes nothing.',
    fix: 'Delete them while no worker runs, if you like.',
  })
}

/** Returns the disks of the database and the journals, each once. */
export function volumesOf(address: string | null, cwd: string): Volume[] {
  const volumes = new Map<number, Volume>()
  for (const { holds, folder } of foldersOf(address, cwd)) {
    const there = nearestFolder(folder)
    const { dev } = statSync(there)
    const before = volumes.get(dev)
    const { bavail, bsize, blocks } = statfsSync(there)
    const space = { free: bavail * bsize, total: blocks * bsize }
    const both = before ? `${before.holds} and ${holds}` : holds
    volumes.set(dev, { holds: both, folder: before?.folder ?? there, ...space })
  }
  return [...volumes.values()]
}

function foldersOf(address: string | null, cwd: string): { holds: string; folder: string }[] {
  const folder = dataFolderPath(address ?? '', cwd)
  const journals = { holds: 'the journals', folder: join(folder, 'journal') }
  return address?.startsWith('sqlite:') ? [{ holds: 'the database', folder }, journals] : [journals]
}

/** Returns why no file can be created at a path, or null. */
export function obstacleTo(path: string): string | null {
  const folder = nearestFolder(dirname(resolve(path)))
  try {
    if (!statSync(folder).isDirectory()) return `${folder} is not a folder`
    accessSync(folder, constants.W_OK)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** Returns the folder, or the nearest one above it that exists. */
function nearestFolder(folder: string): string {
  let there = folder
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there)
  return there
}

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
