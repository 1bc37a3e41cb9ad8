import { basename } from 'node:path'
import { note, ok, warning, type Finding } from '../../../presenters/finding.ts'

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
