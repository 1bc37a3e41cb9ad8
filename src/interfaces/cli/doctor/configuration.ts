import { docPath } from '../../../lib/files/doc-path.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { redact } from '../../../core/model/redact.ts'
import type { ResolvedAddress } from '../../../contracts/database.ts'
import type { Settings } from '../../../contracts/settings.ts'
import {
  fromError,
  note,
  ok,
  problem,
  warning,
  type Attempt,
  type Finding,
} from '../../../contracts/finding.ts'

const NODE_MIN = [24, 15] as const
const SQLITE_MIN = [3, 51, 3] as const

/** Checks Node and its SQLite library. */
export function runtimeFinding(node: string, sqlite: string | undefined): Finding {
  const versions = `Node ${node}, SQLite ${sqlite ?? 'unknown'}`
  if (!isAtLeast(node, NODE_MIN)) {
    return problem('runtime', `${versions}: Node 24.15 or newer is needed.`, {
      why: 'Older versions cannot run Unstuck.',
      fix: 'Install a newer Node from nodejs.org, and in containers use an image such as `node:24`.',
      exitCode: EXIT.usage,
    })
  }
  if (sqlite === undefined || !isAtLeast(sqlite, SQLITE_MIN)) {
    return problem('runtime', `${versions}: SQLite 3.51.3 or newer is needed.`, {
      why: 'Older versions can corrupt a database that several processes use.',
      fix: 'Install a newer Node: it includes SQLite.',
    })
  }
  return ok('runtime', `${versions}.`)
}

function isAtLeast(version: string, minimum: readonly number[]): boolean {
  const parts = version.split('.').map((part) => Number.parseInt(part, 10))
  for (const [place, wanted] of minimum.entries()) {
    const part = parts[place] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}

export function configFinding(config: Attempt<Settings>): Finding {
  if ('error' in config) {
    return fromError('config', config.error, {
      why: 'Commands that read it do not start while it is invalid.',
      fix: `Correct the file; ${docPath('reference/configuration.md')} names every setting.`,
      exitCode: EXIT.usage,
    })
  }
  const { path, warnings } = config.value
  if (path === null) return ok('config', 'No unstuck.config.ts here or above: the defaults apply.')
  if (warnings.length === 0) return ok('config', `${path} is valid.`)
  return warning('config', `${path} is valid, but probably not intended.`, {
    details: warnings,
    why: 'A low threshold ends runs that are only slow.',
    fix: 'Raise the threshold, or keep it if you know that no run is that slow.',
  })
}

const ORIGIN: Record<ResolvedAddress['from'], string> = {
  '--db': 'given with --db',
  UNSTUCK_DB: 'from the environment, UNSTUCK_DB',
  config: 'from the config',
  default: 'the default',
}

/** Reports which database is used, and where it was set. */
export function addressFinding(
  located: Attempt<ResolvedAddress>,
  config: Attempt<Settings>,
): Finding {
  if ('value' in located) {
    const { address, from } = located.value
    return ok('address', `${redact(address)}, ${ORIGIN[from]}.`)
  }
  if ('error' in config) {
    return note('address', 'The database is unknown while the config is invalid.', {
      why: 'The database was not checked.',
      fix: 'Correct the config, or name the database with --db.',
    })
  }
  return fromError('address', located.error, {
    why: 'The database was not checked.',
    fix: 'Correct --db or UNSTUCK_DB.',
  })
}
