import { basename } from 'node:path'
import { note, ok, warning, type Finding } from '../../../presenters/finding.ts'

export type ProcessFacts = { readonly pid: number; readonly argv: readonly string[] }

/** What the kernel tells of the processes above this one. */
export type ProcessTable = {
  /** PID 1; null where there is no /proc. */
  readonly first: ProcessFacts | null
  /** This process's parent, its parent, and so on. The last is PID 1, unless the process was put in from outside. */
  readonly ancestors: readonly ProcessFacts[]
}

/** They signal a whole service or session, so it does not matter who stands in between. */
const SYSTEM_INIT = /^(systemd|init|launchd|openrc-init|runit|upstart)$/
/** They pass a signal on to their one child and to nobody else. */
const CONTAINER_INIT =
  /^(tini(-static)?|dumb-init|docker-init|catatonit|s6-svscan|s6-supervise|runsv|supervisord)$/
const SHELL = /^-?(sh|bash|dash|ash|zsh|ksh)$/
const PACKAGE_MANAGER = /^(npm|npx|yarn|pnpm|pnpx)\b/

/** Whether a SIGTERM from whoever supervises this container reaches the worker, or ends in a wrapper. */
export function signalsFinding({ first, ancestors }: ProcessTable): Finding {
  if (!first) {
    return note('signals', 'Not looked at: this system has no /proc.', {
      why: 'It matters in containers, where one process gets the signal to stop.',
    })
  }
  const name = nameOf(first.argv)
  if (SYSTEM_INIT.test(name)) return ok('signals', `PID 1 is ${name}: signals reach every process.`)
  const wrapper = wrapperOf(first.argv)
  if (wrapper !== null) return swallowedSignalFinding(`PID 1 of this container is ${wrapper}`)
  const below = CONTAINER_INIT.test(name) ? wrapperOf(ancestors.at(-2)?.argv ?? []) : null
  if (below !== null)
    return swallowedSignalFinding(`${below} stands between ${name}, PID 1, and unstuck`)
  return ok('signals', `PID 1 is ${name || 'not to be seen'}: no wrapper swallows signals.`)
}

function swallowedSignalFinding(what: string): Finding {
  return warning('signals', `${what}: a signal to stop ends there.`, {
    why: 'docker stop, Kubernetes and others send SIGTERM to one process. If that does not pass it on, workers save nothing more and are killed when the grace is over. No saved page is lost, but each deploy costs a recovery.',
    mend: 'Start unstuck itself, in exec form: `CMD ["node_modules/.bin/unstuck", "work", "crawl.ts"]`. End an entrypoint script with `exec "$@"`. `docker run --init` adds a PID 1 that also reaps orphans.',
  })
}

/** A package manager, or a shell that runs a command or a script; null for anything else, a shell at a terminal too. */
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

/** What runs: a script for Node by its own name, and npm by the title that it gives itself. */
function nameOf(argv: readonly string[]): string {
  const [program = '', script] = argv
  const name = basename(program.split(' ')[0]!)
  return /^(node|nodejs)$/.test(name) && script !== undefined ? basename(script) : name
}
