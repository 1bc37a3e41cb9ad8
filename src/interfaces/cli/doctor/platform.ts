import type { HostFacts } from '../../../core/host/identity.ts'
import { note, ok, type Finding } from '../../../presenters/finding.ts'

/** What holds on a system. `docs/reference/platforms.md` has the same sentences. */
export type Platform = {
  readonly name: string
  readonly processes: string
  /** When the targets of a dead worker can be claimed again. */
  readonly sqlite: string
  readonly postgres: string
}

const LOCK_FILE = 'within a second: the kernel frees its lock file'
const ELSEWHERE =
  'after a few seconds without a heartbeat if its connection is gone, else after its lease'

export const PLATFORMS = {
  linux: {
    name: 'Linux',
    processes: 'the kernel shows every process of this machine',
    sqlite: `${LOCK_FILE}, in any container of the machine`,
    postgres: `within a second on the same machine; on another one ${ELSEWHERE}`,
  },
  container: {
    name: 'Linux, in a container',
    processes: 'only processes of the same container are visible',
    sqlite: `${LOCK_FILE}, in any container of the machine`,
    postgres: `within a second in the same container; in another one ${ELSEWHERE}`,
  },
  other: {
    name: 'macOS',
    processes: 'no process is visible, because there is no /proc',
    sqlite: LOCK_FILE,
    postgres: ELSEWHERE,
  },
  windows: {
    name: 'Windows',
    processes: 'no process is visible, because there is no /proc',
    sqlite: LOCK_FILE,
    postgres: ELSEWHERE,
  },
} as const satisfies Record<string, Platform>

/** What this machine offers as proof that a worker has ended, and what follows for its database. */
export function platformFinding(host: HostFacts, address: string | null): Finding {
  const kind = kindOf(host)
  const engine = address && (address.startsWith('sqlite:') ? 'sqlite' : 'postgres')
  const { name, processes, ...bounds } = PLATFORMS[kind]
  const system = kind === 'other' ? host.platform : name
  const claimable = engine && ` The targets of a dead worker can be claimed ${bounds[engine]}.`
  const found = `${system}: ${processes}.${claimable ?? ''}`
  if (kind === 'linux' || (kind === 'container' && engine !== 'postgres')) {
    return ok('platform', found)
  }
  return note('platform', found, {
    why:
      kind === 'container'
        ? 'A worker in another container is known by its connection and its heartbeats alone.'
        : 'Unstuck is tested on Linux. Without /proc a process that ended is not proven gone by itself.',
    mend: 'docs/reference/platforms.md shows what holds where.',
  })
}

function kindOf({ platform, namespace }: HostFacts): keyof typeof PLATFORMS {
  if (namespace !== null) return namespace === 'host' ? 'linux' : 'container'
  return platform === 'win32' ? 'windows' : 'other'
}
