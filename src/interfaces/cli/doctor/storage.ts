import { messageOf } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import type { LeftoverLock } from '../../../features/inspection/store/store.ts'
import { plural } from '../../../presenters/format.ts'
import { firstOf, note, ok, problem, warning, type Finding } from '../../../presenters/finding.ts'
import {
  type EngineFacts,
  type SqliteFacts,
} from '../../../features/inspection/store/database-info.ts'
import { type BlockedWal } from '../../../core/store/sqlite/wal.ts'

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
