import process from 'node:process'
import { isLocalProcess, readProcessStat, thisProcess } from '../../../core/host/identity.ts'
import { note, ok, type Finding } from '../../../presenters/finding.ts'

/** What this machine shows of its processes. `own`: the pid namespace of a container; `host`: that of the machine. */
export type HostFacts = {
  readonly platform: NodeJS.Platform
  /** Null without a readable /proc: then it proves no process gone. */
  readonly namespace: 'host' | 'own' | null
}

/** The kernel gives only the first pid namespace of a machine this number. */
const HOST_NAMESPACE = 'pid:[4026531836]'

export function readHostFacts(): HostFacts {
  const { platform, pid } = process
  const self = thisProcess()
  if (!isLocalProcess(self) || !readProcessStat(pid)) return { platform, namespace: null }
  return { platform, namespace: self.pidNamespace === HOST_NAMESPACE ? 'host' : 'own' }
}

/** What is known about processes on a system. `docs/reference/platforms.md` has the same sentences. */
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

/** Reports how this system proves that a worker has ended, and how fast its targets are recovered. */
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
        ? 'Of a worker in another container only the connection and the heartbeats are known.'
        : 'Unstuck is tested on Linux. Without /proc the end of a process cannot be proven.',
    fix: 'docs/reference/platforms.md describes each system.',
  })
}

function kindOf({ platform, namespace }: HostFacts): keyof typeof PLATFORMS {
  if (namespace !== null) return namespace === 'host' ? 'linux' : 'container'
  return platform === 'win32' ? 'windows' : 'other'
}
