import { extname } from 'node:path'
import type { Command, CommandEntry } from '../../contracts/command.ts'
import { FEATURES } from '../../features/index.ts'

/** Names and summaries of commands. Those of features are in their `feature.ts`. */
type Summaries = Readonly<Record<string, string | SubCommands>>
type SubCommands = { readonly summary: string; readonly commands: Summaries }

/** By the headings of the help. */
const SUMMARIES: Readonly<Record<string, Summaries>> = {
  'Work:': {
    init: 'Write a config, an example crawl, and files for PM2, systemd, Docker and others.',
    work: 'Start workers on a crawl. Processes that work on the same crawl share its run.',
    enqueue: 'Queue a run for the next worker.',
    pause: 'Pause a source: no new run and no new claim. Pages in progress are finished.',
    unpause: 'End the pause of a source: its runs and its schedule go on.',
    'run-now': 'Start a scheduled command at once, by the supervisor that waits for its next time.',
  },
  'Inspect:': {
    status: 'Show whether anything is stuck: live runs, workers, and what needs attention.',
    serve: 'Serve the dashboard, the HTTP API and the metrics, on this machine or for a team.',
    top: 'Show everything live on one screen, with keys to inspect, recover, clean and undo.',
    runs: 'List all runs, newest first.',
    show: 'Show one run: facts, counts, what needs attention, and what recovery did.',
    targets: 'List the targets of a run, by status or group.',
    progress: 'Show how far live runs are, by group, page or status.',
    workers: 'List workers, their last heartbeat, and whether they are alive.',
    explain: 'Explain the state of a run or target: evidence, policy, verdict, what changes it.',
    summary: 'List live runs by what can be done with them: active, resumable, dead.',
    history: 'Show what was cleaned, recovered and reverted: counts by source, and the audit log.',
  },
  'Recover and undo:': {
    check: 'Report before a start whether to start, resume, clean or wait, and why.',
    recover: 'Recover orphans now: the work of dead and silent workers. Live ones are not touched.',
    clean: 'List resumable and dead runs; marks the dead as “Timeout – auto-cleaned”.',
    cancel: 'End a live run. Its workers stop at the end of the current page.',
    fail: 'End a live row of a table of your own as failed.',
    resume: 'Reopen an ended run. It continues from its last saved pages when a worker starts.',
    retry: 'Queue a new run that starts this one over. Saved items stay.',
    revert: 'Undo the last clean, cancel, fail or recovery of a run.',
    'reset-failed':
      'Put failed targets back in the queue, from their last saved pages. Has no undo.',
    acknowledge: 'Mark what failed, is stuck or parked as seen: kept, and no longer counted.',
    park: 'Park targets, also claimed ones, until they are unparked.',
    unpark: 'Put parked and stuck targets back in the queue, from their last saved pages.',
    rewind: 'Move the cursor of a target back. Saved items stay. Has no undo.',
  },
  'Results and logs:': {
    items: 'Print saved items as a stream of JSON lines, CSV or JSON.',
  },
  'Maintenance:': {
    doctor: 'Check runtime, config, database, disk and signals, and the guarantees on the data.',
    backup: 'Copy a SQLite database that is in use into a file, and check the copy.',
    migrate: "Bring the database's schema up to date, or report what is pending.",
    tokens: {
      summary: 'Manage access to the dashboard and the API, by role.',
      commands: {
        add: 'Make a token for a user or a program. It is shown once.',
        list: 'List tokens by name and role. The tokens themselves are not kept.',
        remove: 'Remove a token, with every session that was opened with it.',
      },
    },
    config: {
      summary: 'Show the settings in effect.',
      commands: { show: 'Show the settings in effect, each with its origin.' },
    },
    completion: 'Print the script that completes commands, flags, sources and ids in your shell.',
  },
}

/** The commands of the program and of its features, as the help lists them. */
export const COMMANDS: readonly CommandEntry[] = Object.entries(SUMMARIES).flatMap(
  ([group, summaries]) => {
    const entries = entriesOf(summaries)
    for (const entry of FEATURES.flatMap(({ commands = [] }) => commands)) {
      if (entry.group !== group) continue
      const at = entries.findIndex(({ name }) => name === entry.before)
      entries.splice(at === -1 ? entries.length : at, 0, entry)
    }
    return entries.map((entry) => ({ ...entry, group }))
  },
)

/** Files of `commands/` with several commands, exported by their names. Every other file is named after its command. */
const SHARED_FILES: Readonly<Record<string, readonly string[]>> = {
  reads: ['status', 'runs', 'show', 'workers', 'explain', 'summary', 'history', 'check'],
  'run-actions': ['cancel', 'fail', 'resume', 'retry', 'revert'],
  'source-actions': ['pause', 'unpause', 'run-now'],
  'target-actions': ['park', 'unpark', 'rewind'],
  tokens: ['tokens-add', 'tokens-list', 'tokens-remove'],
}

function entriesOf(summaries: Summaries, prefix = ''): CommandEntry[] {
  return Object.entries(summaries).map(([name, given]) => {
    if (typeof given !== 'string')
      return { name, summary: given.summary, commands: entriesOf(given.commands, `${name}-`) }
    return { name, summary: given, load: () => loadCommand(name, `${prefix}${name}`) }
  })
}

async function loadCommand(name: string, id: string): Promise<{ command: Command<any, any> }> {
  const [file = id] = Object.keys(SHARED_FILES).filter((one) => SHARED_FILES[one]!.includes(id))
  const path = `./commands/${file}${extname(import.meta.url)}`
  const module = await import(new URL(path, import.meta.url).href)
  return { command: module.command ?? module[name] }
}

/** `['journal', 'read']` of `['journal', 'read', '--typ', 'x']`: the longest known command in the arguments. */
export function resolveCommand(argv: readonly string[]): string[] {
  const words: string[] = []
  let entries = COMMANDS
  for (const word of argv) {
    const entry = entries.find(({ name }) => name === word)
    if (!entry) continue
    words.push(entry.name)
    if ('load' in entry) break
    entries = entry.commands
  }
  return words
}
