import { basename } from 'node:path'
import { UsageError } from '../../../core/model/errors.ts'
import { formatDuration } from '../../../core/model/time.ts'
import type { WrappedCommand } from './command.ts'
import {
  escapeCron,
  escapeJs,
  escapeJson,
  escapeSpecifiers,
  escapeXml,
  execStart,
  windowsArguments,
} from './escape.ts'
import type { Facts } from './project.ts'
import { supervisor, type Supervisor, type SupervisorName } from './supervisors.ts'
import { renderTemplate, type NewFile } from './write.ts'

type MakeFiles = (facts: Facts, command: WrappedCommand) => readonly NewFile[]

const MINUTE_MS = 60_000
const DAY_MINUTES = 24 * 60

const FILES: Readonly<Record<SupervisorName, MakeFiles>> = {
  pm2: (facts, command) => [
    render('ecosystem.config.cjs', 'for PM2', facts, command, escapeJs, {
      BIN: escapeJs(facts.binFromFolder),
      ARGS: keptRunning(command, command.words)
        .map((word) => `'${escapeJs(word)}'`)
        .join(', '),
    }),
  ],
  systemd: (facts, command) => [
    {
      ...render('unstuck.service', 'for systemd', facts, command, escapeSpecifiers, {
        EXECSTART: execStart([
          facts.node,
          facts.bin,
          ...keptRunning(command, onThisMachine(command)),
        ]),
      }),
      path: `${facts.name}.service`,
    },
  ],
  docker: (facts, command) => [
    render('Dockerfile', 'for Docker', facts, command, escapeJson, {
      INSTALL: facts.hasLockFile ? 'ci' : 'install',
      PACKAGES: packagesFor(command.words[0]),
      ARGS: jsonWords(keptRunning(command, command.words)),
    }),
    ...supervisor('docker').files(facts).slice(1),
  ],
  kubernetes: (facts, command) => [
    render('kubernetes.yaml', 'for Kubernetes', facts, command, escapeJson, {
      // $(NAME) would be a variable.
      ARGS: jsonWords(keptRunning(command, command.words)).replaceAll('$', '$$$$'),
    }),
  ],
  cron: (facts, command) => [
    {
      ...render('unstuck.cron', 'starts it at its times, by cron', facts, command, escapeCron, {
        SCHEDULE: cronSchedule(command.intervalMs),
        ARGS: startedAnew(command).map(escapeCron).join(' '),
      }),
      path: cronFile(facts),
    },
  ],
  windows: (facts, command) => [
    {
      ...render(
        'unstuck.xml',
        "starts it at its times, by Windows' Task Scheduler",
        facts,
        command,
        escapeXml,
        {
          INTERVAL: `PT${wholeMinutes(command.intervalMs, 31 * DAY_MINUTES)}M`,
          ARGUMENTS: escapeXml(windowsArguments([facts.binFromFolder, ...startedAnew(command)])),
        },
      ),
      path: taskFile(facts),
      // schtasks rejects UTF-8.
      utf16: true,
    },
  ],
}

/** The files and commands that run a command with `unstuck run` under a supervisor. */
export function commandSupervisor(name: SupervisorName, command: WrappedCommand): Supervisor {
  return {
    files: (facts) => FILES[name](facts, command),
    next: (facts) => {
      if (name === 'cron') return [`(crontab -l 2>/dev/null; cat ${cronFile(facts)}) | crontab -`]
      if (name === 'windows') return [`schtasks /Create /TN ${facts.name} /XML ${taskFile(facts)}`]
      return supervisor(name).next(facts)
    },
  }
}

const cronFile = ({ name }: Facts): string => `${name}.cron`
const taskFile = ({ name }: Facts): string => `${name}.xml`

/** Unstuck stays and starts the command again after each end. */
function keptRunning(command: WrappedCommand, words: readonly string[]): string[] {
  return runWords(command.source, ['--interval', formatDuration(command.intervalMs)], words)
}

/** The supervisor starts Unstuck each time; its log holds only what Unstuck itself reports. */
function startedAnew(command: WrappedCommand): string[] {
  return runWords(command.source, ['--if-running', 'skip', '--quiet'], onThisMachine(command))
}

function runWords(source: string, flags: readonly string[], words: readonly string[]): string[] {
  // What begins with a dash would be taken for an option.
  return source.startsWith('-')
    ? ['run', ...flags, '--', source, ...words]
    : ['run', source, ...flags, '--', ...words]
}

/** A supervisor of the machine has another PATH. */
function onThisMachine({ words: [program, ...args], programPath }: WrappedCommand): string[] {
  return [programPath ?? program, ...args]
}

function render(
  path: string,
  about: string,
  { folder, name, node, bin, user }: Facts,
  { intervalMs }: WrappedCommand,
  escape: (text: string) => string,
  own: Readonly<Record<string, string>>,
): NewFile {
  const given = { FOLDER: folder, NAME: name, NODE: node, BIN: bin, USER: user }
  const values = Object.fromEntries(Object.entries(given).map(([key, text]) => [key, escape(text)]))
  const all = { ...values, EVERY: formatDuration(intervalMs), ...own }
  return { path, about, text: renderTemplate(`command/${path}`, all) }
}

function jsonWords(words: readonly string[]): string {
  return words.map((word) => `"${escapeJson(word)}"`).join(', ')
}

/** The image has Node and a shell. Debian has `python` under another name. */
function packagesFor(program: string): string {
  const python = { python: 'python3 python-is-python3', python3: 'python3' }[basename(program)]
  const install = `RUN apt-get update && apt-get install -y --no-install-recommends ${python ?? 'NAME'} && rm -rf /var/lib/apt/lists/*`
  return python === undefined ? `# ${install}` : install
}

/** Returns the fields of a crontab line: an interval must divide the hour or the day. */
export function cronSchedule(intervalMs: number): string {
  const minutes = wholeMinutes(intervalMs, DAY_MINUTES)
  const hours = minutes / 60
  if (minutes === 1) return '* * * * *'
  if (60 % minutes === 0 && minutes < 60) return `*/${minutes} * * * *`
  if (minutes === 60) return '0 * * * *'
  if (minutes === DAY_MINUTES) return '0 3 * * *'
  if (Number.isInteger(hours) && 24 % hours === 0) return `0 */${hours} * * *`
  throw new UsageError(
    `--interval ${formatDuration(intervalMs)} cannot be a line of a crontab: it must divide an hour or a day, as 10m or 6h do.`,
  )
}

function wholeMinutes(intervalMs: number, max: number): number {
  const minutes = intervalMs / MINUTE_MS
  if (Number.isInteger(minutes) && minutes >= 1 && minutes <= max) return minutes
  throw new UsageError(
    `--interval ${formatDuration(intervalMs)} must be whole minutes for cron and Windows, and ${formatDuration(max * MINUTE_MS)} at most.`,
  )
}
