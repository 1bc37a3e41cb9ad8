import type { Command } from './command.ts'

/** A command as `--help` lists it. Its file is loaded only when the command is called. */
export type CommandEntry = {
  readonly name: string
  readonly summary: string
  readonly group?: string
} & (
  | { readonly load: () => Promise<Command<any, any>> }
  | { readonly commands: readonly CommandEntry[] }
)

type CommandMap = Readonly<
  Record<
    string,
    {
      readonly summary: string
      readonly load?: () => Promise<Command<any, any>>
      readonly commands?: CommandMap
    }
  >
>

const WORK: CommandMap = {
  demo: {
    summary: 'Crawl a built-in site, kill its workers with kill -9, and verify the result.',
    load: async () => (await import('./commands/demo.ts')).demo,
  },
  init: {
    summary: 'Write a config, an example crawl, and files for PM2, systemd, Docker and others.',
    load: async () => (await import('./commands/init.ts')).init,
  },
  adopt: {
    summary: 'Find runs tables in your own database, assess their rows, and write the config.',
    load: async () => (await import('./commands/adopt.ts')).adopt,
  },
  work: {
    summary: 'Start workers on a crawl. Processes that work on the same crawl share its run.',
    load: async () => (await import('./commands/work.ts')).work,
  },
  run: {
    summary: 'Wrap a command: one copy at a time, restarts, history, checkpoints over HTTP.',
    load: async () => (await import('./commands/run.ts')).run,
  },
  enqueue: {
    summary: 'Queue a run for the next worker.',
    load: async () => (await import('./commands/enqueue.ts')).enqueue,
  },
  chaos: {
    summary: 'Kill your own worker at random moments, and verify that nothing is lost or doubled.',
    load: async () => (await import('./commands/chaos.ts')).chaos,
  },
}

const INSPECT: CommandMap = {
  status: {
    summary: 'Show whether anything is stuck: live runs, workers, and what needs attention.',
    load: async () => (await import('./commands/status.ts')).status,
  },
  serve: {
    summary: 'Serve the dashboard, the HTTP API and the metrics, on this machine or for a team.',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  top: {
    summary: 'Show everything live on one screen, with keys to inspect, recover, clean and undo.',
    load: async () => (await import('./commands/top.ts')).top,
  },
  runs: {
    summary: 'List all runs, newest first.',
    load: async () => (await import('./commands/runs.ts')).runs,
  },
  show: {
    summary: 'Show one run: facts, counts, what needs attention, and what recovery did.',
    load: async () => (await import('./commands/show.ts')).show,
  },
  progress: {
    summary: 'Show how far live runs are, by group, page or status.',
    load: async () => (await import('./commands/progress.ts')).progress,
  },
  workers: {
    summary: 'List workers, their last heartbeat, and whether they are alive.',
    load: async () => (await import('./commands/workers.ts')).workers,
  },
  explain: {
    summary: 'Explain the state of a run or target: evidence, policy, verdict, what changes it.',
    load: async () => (await import('./commands/explain.ts')).explain,
  },
  summary: {
    summary: 'List live runs by what can be done with them: active, resumable, dead.',
    load: async () => (await import('./commands/summary.ts')).summary,
  },
  history: {
    summary: 'Show what was cleaned, recovered and reverted: counts by source, and the audit log.',
    load: async () => (await import('./commands/history.ts')).history,
  },
}

const RECOVER: CommandMap = {
  check: {
    summary: 'Report before a start whether to start, resume, clean or wait, and why.',
    load: async () => (await import('./commands/check.ts')).check,
  },
  recover: {
    summary: 'Recover orphans now: the work of dead and silent workers. Live ones are not touched.',
    load: async () => (await import('./commands/recover.ts')).recover,
  },
  clean: {
    summary: 'List resumable and dead runs; marks the dead as “Timeout – auto-cleaned”.',
    load: async () => (await import('./commands/clean.ts')).clean,
  },
  cancel: {
    summary: 'End a live run. Its workers stop at the end of the current page.',
    load: async () => (await import('./commands/cancel.ts')).cancel,
  },
  resume: {
    summary: 'Reopen an ended run. It continues from its last saved pages when a worker starts.',
    load: async () => (await import('./commands/resume.ts')).resume,
  },
  retry: {
    summary: 'Queue a new run that starts this one over. Saved items stay.',
    load: async () => (await import('./commands/retry.ts')).retry,
  },
  revert: {
    summary: 'Undo the last clean, cancel, fail or recovery of a run.',
    load: async () => (await import('./commands/revert.ts')).revert,
  },
  'reset-failed': {
    summary: 'Put failed targets back in line, from their last saved pages.',
    load: async () => (await import('./commands/reset-failed.ts')).resetFailed,
  },
  park: {
    summary: 'Set targets aside, also claimed ones, until they are unparked.',
    load: async () => (await import('./commands/park.ts')).park,
  },
  unpark: {
    summary: 'Put parked and held targets back in line, from their last saved pages.',
    load: async () => (await import('./commands/unpark.ts')).unpark,
  },
  rewind: {
    summary: 'Move the cursor of a target back. Saved items stay.',
    load: async () => (await import('./commands/rewind.ts')).rewind,
  },
}

const RESULTS: CommandMap = {
  items: {
    summary: 'Print saved items as a stream of JSON lines, CSV or JSON.',
    load: async () => (await import('./commands/items.ts')).items,
  },
  logs: {
    summary: 'Print the output of the command of a run, and follow it.',
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  journal: {
    summary: "Read, follow or compress a worker's journal.",
    commands: {
      read: {
        summary: 'Print the events of a journal, all or filtered, or their counts.',
        load: async () => (await import('./commands/journal-read.ts')).journalRead,
      },
      tail: {
        summary: 'Print the last events of a journal, and follow it.',
        load: async () => (await import('./commands/journal-tail.ts')).journalTail,
      },
      compress: {
        summary: 'Compress the journal of a worker that has ended into a .zst file.',
        load: async () => (await import('./commands/journal-compress.ts')).journalCompress,
      },
    },
  },
}

const MAINTENANCE: CommandMap = {
  doctor: {
    summary: 'Check runtime, config, database, disk and signals, and the guarantees on the data.',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  migrate: {
    summary: "Bring the database's schema up to date, or report what is pending.",
    load: async () => (await import('./commands/migrate.ts')).migrate,
  },
  tokens: {
    summary: 'Manage access to the dashboard and the API, by role.',
    commands: {
      add: {
        summary: 'Make a token for a person or a program. It is shown once.',
        load: async () => (await import('./commands/tokens-add.ts')).tokensAdd,
      },
      list: {
        summary: 'List tokens by name and role. The tokens themselves are not kept.',
        load: async () => (await import('./commands/tokens-list.ts')).tokensList,
      },
      remove: {
        summary: 'Remove a token, with every session that was opened with it.',
        load: async () => (await import('./commands/tokens-remove.ts')).tokensRemove,
      },
    },
  },
  alerts: {
    summary: 'List open alerts, and test the channels.',
    commands: {
      list: {
        summary: 'List open alerts: since when, why, and the command that helps.',
        load: async () => (await import('./commands/alerts-list.ts')).alertsList,
      },
      test: {
        summary: 'Send a test message through each channel of the config.',
        load: async () => (await import('./commands/alerts-test.ts')).alertsTest,
      },
    },
  },
  config: {
    summary: 'Show the settings in effect.',
    commands: {
      show: {
        summary: 'Show the settings in effect, each with its origin.',
        load: async () => (await import('./commands/config-show.ts')).configShow,
      },
    },
  },
}

/** The only place that has the names and summaries of commands. */
export const COMMANDS: readonly CommandEntry[] = [
  ...entriesOf(WORK, 'Work:'),
  ...entriesOf(INSPECT, 'Inspect:'),
  ...entriesOf(RECOVER, 'Recover and undo:'),
  ...entriesOf(RESULTS, 'Results and logs:'),
  ...entriesOf(MAINTENANCE, 'Maintenance:'),
]

function entriesOf(map: CommandMap, group?: string): CommandEntry[] {
  return Object.entries(map).map(([name, { summary, load, commands }]) => ({
    name,
    summary,
    ...(group && { group }),
    ...(load ? { load } : { commands: entriesOf(commands!) }),
  }))
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
