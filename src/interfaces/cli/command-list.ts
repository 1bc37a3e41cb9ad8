import type { Command } from './command.ts'

/** A command as `--help` lists it. Its file is loaded only when it is called. */
export type CommandEntry = {
  readonly name: string
  readonly summary: string
  readonly group?: string
} & (
  | { readonly load: () => Promise<Command<any, any>> }
  | { readonly commands: readonly CommandEntry[] }
)

const WORK = 'Work:'
const INSPECT = 'Look:'
const RECOVER = 'Recover and undo:'
const RESULTS = 'Results and logs:'
const MAINTENANCE = 'Upkeep:'

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'demo',
    summary: 'The whole story on this machine: workers, kill -9, nothing lost, nothing doubled.',
    group: WORK,
    load: async () => (await import('./commands/demo.ts')).demo,
  },
  {
    name: 'init',
    summary: 'Write a config, an example crawl, and files for PM2, systemd, Docker and others.',
    group: WORK,
    load: async () => (await import('./commands/init.ts')).init,
  },
  {
    name: 'adopt',
    summary: 'Find tables of runs in a database of your own, judge them dry, write the config.',
    group: WORK,
    load: async () => (await import('./commands/adopt.ts')).adopt,
  },
  {
    name: 'work',
    summary: "Work on a crawl's run together with every other process that does.",
    group: WORK,
    load: async () => (await import('./commands/work.ts')).work,
  },
  {
    name: 'run',
    summary: 'Wrap a command: one copy at a time, restarts, history, checkpoints over HTTP.',
    group: WORK,
    load: async () => (await import('./commands/run.ts')).run,
  },
  {
    name: 'enqueue',
    summary: 'Queue a run for workers to take up.',
    group: WORK,
    load: async () => (await import('./commands/enqueue.ts')).enqueue,
  },
  {
    name: 'chaos',
    summary: 'Kill your own worker at random moments, and prove that nothing was lost or doubled.',
    group: WORK,
    load: async () => (await import('./commands/chaos.ts')).chaos,
  },
  {
    name: 'status',
    summary: 'Is anything stuck? Live runs, workers, and what is left for a person.',
    group: INSPECT,
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'serve',
    summary: 'The dashboard, the HTTP API and the metrics, on this machine or for a team.',
    group: INSPECT,
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'top',
    summary: 'Everything live on one screen, with keys to look closer, recover, clean and undo.',
    group: INSPECT,
    load: async () => (await import('./commands/top.ts')).top,
  },
  {
    name: 'runs',
    summary: 'All runs, newest first.',
    group: INSPECT,
    load: async () => (await import('./commands/runs.ts')).runs,
  },
  {
    name: 'show',
    summary: 'One run: its facts, counts, trouble, and what recovery did.',
    group: INSPECT,
    load: async () => (await import('./commands/show.ts')).show,
  },
  {
    name: 'progress',
    summary: 'How far live runs are, by group, page or status.',
    group: INSPECT,
    load: async () => (await import('./commands/progress.ts')).progress,
  },
  {
    name: 'workers',
    summary: 'Who works, their last sign of life, and what it says.',
    group: INSPECT,
    load: async () => (await import('./commands/workers.ts')).workers,
  },
  {
    name: 'explain',
    summary:
      'Why a run or a target is what it is: evidence, policy, verdict, and what would change it.',
    group: INSPECT,
    load: async () => (await import('./commands/explain.ts')).explain,
  },
  {
    name: 'summary',
    summary: 'Live runs by what can be said about them: active, resumable, dead.',
    group: INSPECT,
    load: async () => (await import('./commands/summary.ts')).summary,
  },
  {
    name: 'history',
    summary:
      'What was cleaned, recovered, reverted: counts by source, and the trail of who and why.',
    group: INSPECT,
    load: async () => (await import('./commands/history.ts')).history,
  },
  {
    name: 'check',
    summary: 'Before a start: start, resume, clean or wait, and why.',
    group: RECOVER,
    load: async () => (await import('./commands/check.ts')).check,
  },
  {
    name: 'recover',
    summary: 'Recover orphans now: what the dead and the silent held. Never touches the living.',
    group: RECOVER,
    load: async () => (await import('./commands/recover.ts')).recover,
  },
  {
    name: 'clean',
    summary: 'Resumable and dead runs side by side; marks the dead as “Timeout – auto-cleaned”.',
    group: RECOVER,
    load: async () => (await import('./commands/clean.ts')).clean,
  },
  {
    name: 'cancel',
    summary: 'End a live run. Whoever works on it stops at the end of the page in hand.',
    group: RECOVER,
    load: async () => (await import('./commands/cancel.ts')).cancel,
  },
  {
    name: 'resume',
    summary: 'Open an ended run again: it goes on from its last saved pages when a worker starts.',
    group: RECOVER,
    load: async () => (await import('./commands/resume.ts')).resume,
  },
  {
    name: 'retry',
    summary: 'Queue a new run that follows this one from nothing. What was saved stays saved.',
    group: RECOVER,
    load: async () => (await import('./commands/retry.ts')).retry,
  },
  {
    name: 'revert',
    summary: 'Take back the last clean, cancel, fail or recovery of a run.',
    group: RECOVER,
    load: async () => (await import('./commands/revert.ts')).revert,
  },
  {
    name: 'reset-failed',
    summary: 'Put failed targets back in line, from their last saved pages.',
    group: RECOVER,
    load: async () => (await import('./commands/reset-failed.ts')).resetFailed,
  },
  {
    name: 'park',
    summary: 'Set targets aside, whoever has them, until somebody puts them back.',
    group: RECOVER,
    load: async () => (await import('./commands/park.ts')).park,
  },
  {
    name: 'unpark',
    summary: 'Put parked and held targets back in line, from their last saved pages.',
    group: RECOVER,
    load: async () => (await import('./commands/unpark.ts')).unpark,
  },
  {
    name: 'rewind',
    summary: 'Move the cursor of a target back: the one way it goes back. Items stay.',
    group: RECOVER,
    load: async () => (await import('./commands/rewind.ts')).rewind,
  },
  {
    name: 'items',
    summary: 'What was saved, as a stream of JSON lines, CSV or JSON.',
    group: RESULTS,
    load: async () => (await import('./commands/items.ts')).items,
  },
  {
    name: 'logs',
    summary: 'What the command of a run printed, and what it prints now.',
    group: RESULTS,
    load: async () => (await import('./commands/logs.ts')).logs,
  },
  {
    name: 'journal',
    summary: "Read, follow or compress a worker's journal.",
    group: RESULTS,
    commands: [
      {
        name: 'read',
        summary: 'Events of a journal, all or some, or how many of each.',
        load: async () => (await import('./commands/journal-read.ts')).journalRead,
      },
      {
        name: 'tail',
        summary: 'The last events of a journal, and those to come.',
        load: async () => (await import('./commands/journal-tail.ts')).journalTail,
      },
      {
        name: 'compress',
        summary: 'Turn the journal of a worker that has ended into a .zst file.',
        load: async () => (await import('./commands/journal-compress.ts')).journalCompress,
      },
    ],
  },
  {
    name: 'doctor',
    summary: 'Check runtime, config, database, disk, signals, and the promises the data shows.',
    group: MAINTENANCE,
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'migrate',
    summary: "Bring the database's schema up to date, or say what is pending.",
    group: MAINTENANCE,
    load: async () => (await import('./commands/migrate.ts')).migrate,
  },
  {
    name: 'tokens',
    summary: 'Who may use the dashboard and the API, and in which role.',
    group: MAINTENANCE,
    commands: [
      {
        name: 'add',
        summary: 'Make a token for a person or a program. It is shown once.',
        load: async () => (await import('./commands/tokens-add.ts')).tokensAdd,
      },
      {
        name: 'list',
        summary: 'The tokens by name and role. The tokens themselves are not kept.',
        load: async () => (await import('./commands/tokens-list.ts')).tokensList,
      },
      {
        name: 'remove',
        summary: 'Take a token away, with every session that came from it.',
        load: async () => (await import('./commands/tokens-remove.ts')).tokensRemove,
      },
    ],
  },
  {
    name: 'alerts',
    summary: 'What people are told: open alerts, and a test of the channels.',
    group: MAINTENANCE,
    commands: [
      {
        name: 'list',
        summary: 'What is open: since when, why, and what to type.',
        load: async () => (await import('./commands/alerts-list.ts')).alertsList,
      },
      {
        name: 'test',
        summary: 'Send a test message through each channel of the config.',
        load: async () => (await import('./commands/alerts-test.ts')).alertsTest,
      },
    ],
  },
  {
    name: 'config',
    summary: 'The settings that count, and where they come from.',
    group: MAINTENANCE,
    commands: [
      {
        name: 'show',
        summary: 'The settings that count, each with where it comes from.',
        load: async () => (await import('./commands/config-show.ts')).configShow,
      },
    ],
  },
]

/** `['journal', 'read']` of `['journal', 'read', '--typ', 'x']`: the command that was meant, as far as it is known. */
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
