import { docPath } from '../../../lib/files/doc-path.ts'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import process from 'node:process'
import { isLocalProcess, readProcessStat, thisProcess } from '../../../core/host/identity.ts'
import { note, ok, warning, type Finding } from '../../../contracts/finding.ts'

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
    fix: `${docPath('reference/platforms.md')} describes each system.`,
  })
}

function kindOf({ platform, namespace }: HostFacts): keyof typeof PLATFORMS {
  if (namespace !== null) return namespace === 'host' ? 'linux' : 'container'
  return platform === 'win32' ? 'windows' : 'other'
}

export type ProcessFacts = { readonly pid: number; readonly argv: readonly string[] }

/** The processes above this one. */
export type ProcessTable = {
  /** PID 1; null where there is no /proc. */
  readonly first: ProcessFacts | null
  /** The parent of this process, its parent, and so on. The last is PID 1, unless the process was started from outside the container. */
  readonly ancestors: readonly ProcessFacts[]
}

/** They signal every process of a service or session. */
const SYSTEM_INIT = /^(systemd|init|launchd|openrc-init|runit|upstart)$/
/** They forward a signal to their child only. */
const CONTAINER_INIT =
  /^(tini(-static)?|dumb-init|docker-init|catatonit|s6-svscan|s6-supervise|runsv|supervisord)$/
const SHELL = /^-?(sh|bash|dash|ash|zsh|ksh)$/
const PACKAGE_MANAGER = /^(npm|npx|yarn|pnpm|pnpx)\b/

/** Checks that a SIGTERM sent to this container reaches the worker, and that no wrapper swallows it. */
export function signalsFinding({ first, ancestors }: ProcessTable): Finding {
  if (!first) {
    return note('signals', 'Not checked: this system has no /proc.', {
      why: 'In a container, only one process gets the signal to stop.',
    })
  }
  const name = nameOf(first.argv)
  if (SYSTEM_INIT.test(name)) return ok('signals', `PID 1 is ${name}: signals reach every process.`)
  const wrapper = wrapperOf(first.argv)
  if (wrapper !== null) return swallowedSignalFinding(`PID 1 of this container is ${wrapper}`)
  const below = CONTAINER_INIT.test(name) ? wrapperOf(ancestors.at(-2)?.argv ?? []) : null
  if (below !== null)
    return swallowedSignalFinding(`${below} is between ${name}, PID 1, and unstuck`)
  return ok('signals', `PID 1 is ${name || 'unknown'}: no wrapper swallows signals.`)
}

function swallowedSignalFinding(what: string): Finding {
  return warning('signals', `${what}: it does not forward signals.`, {
    why: 'docker stop, Kubernetes and others send SIGTERM to one process. If it does not forward the signal, workers are killed after the grace period. No saved page is lost, but each deploy needs a recovery.',
    fix: 'Start unstuck itself, in exec form: `CMD ["node_modules/.bin/unstuck", "work", "crawl.ts"]`. End an entrypoint script with `exec "$@"`. `docker run --init` adds a PID 1 that also reaps orphans.',
  })
}

/** Returns a package manager, or a shell that runs a command or a script; null for anything else, such as an interactive shell. */
function wrapperOf(argv: readonly string[]): string | null {
  const name = nameOf(argv)
  const manager = PACKAGE_MANAGER.exec(name)?.[1]
  if (manager) return manager
  if (!SHELL.test(name)) return null
  const command = argv.slice(1).find((word) => isCommandFlag(word) || !word.startsWith('-'))
  if (command === undefined) return null
  return isCommandFlag(command) ? `${name} -c` : `the shell script ${basename(command)}`
}

/** `-c`, `-lc`, `-ec`. */
function isCommandFlag(word: string): boolean {
  return /^-[a-z]*c$/.test(word)
}

/** Returns the name of a program: for Node that of its script, for npm that of its process title. */
function nameOf(argv: readonly string[]): string {
  const [program = '', script] = argv
  const name = basename(program.split(' ')[0]!)
  return /^(node|nodejs)$/.test(name) && script !== undefined ? basename(script) : name
}

const DEPTH_MAX = 64

/** Reads /proc. The table is empty if it cannot be read. */
export function readProcessTable(): ProcessTable {
  const ancestors: ProcessFacts[] = []
  for (let pid = process.ppid; pid > 0 && ancestors.length < DEPTH_MAX; pid = parentOf(pid)) {
    ancestors.push({ pid, argv: argvOf(pid) ?? [] })
  }
  const argv = argvOf(1)
  return { first: argv && { pid: 1, argv }, ancestors }
}

function argvOf(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return text.split('\0').filter((word) => word !== '')
  } catch {
    return null
  }
}

/** Returns 0 for PID 1, and for a process that was started from outside its container. */
function parentOf(pid: number): number {
  return readProcessStat(pid)?.parent ?? 0
}
