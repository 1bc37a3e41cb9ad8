import type { Command } from './command.ts'

/** A command as `--help` lists it. Its file is loaded only when it is called. */
export type Entry = {
  readonly name: string
  readonly summary: string
  readonly group?: string
} & ({ readonly load: () => Promise<Command<any, any>> } | { readonly commands: readonly Entry[] })

const WORK = 'Work:'
const LOOK = 'Look:'
const RESULTS = 'Results and logs:'

export const CATALOGUE: readonly Entry[] = [
  {
    name: 'demo',
    summary: 'The whole story on this machine: workers, kill -9, nothing lost, nothing doubled.',
    group: WORK,
    load: async () => (await import('./commands/demo.ts')).demo,
  },
  {
    name: 'work',
    summary: "Work on a crawl's run together with every other process that does.",
    group: WORK,
    load: async () => (await import('./commands/work.ts')).work,
  },
  {
    name: 'enqueue',
    summary: 'Queue a run for workers to take up.',
    group: WORK,
    load: async () => (await import('./commands/enqueue.ts')).enqueue,
  },
  {
    name: 'status',
    summary: 'Is anything stuck? Live runs, workers, and what is left for a person.',
    group: LOOK,
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'runs',
    summary: 'All runs, newest first.',
    group: LOOK,
    load: async () => (await import('./commands/runs.ts')).runs,
  },
  {
    name: 'show',
    summary: 'One run: its facts, counts, trouble, and what recovery did.',
    group: LOOK,
    load: async () => (await import('./commands/show.ts')).show,
  },
  {
    name: 'progress',
    summary: 'How far live runs are, by group, page or status.',
    group: LOOK,
    load: async () => (await import('./commands/progress.ts')).progress,
  },
  {
    name: 'workers',
    summary: 'Who works, their last sign of life, and what it says.',
    group: LOOK,
    load: async () => (await import('./commands/workers.ts')).workers,
  },
  {
    name: 'items',
    summary: 'What was saved, as a stream of JSON lines, CSV or JSON.',
    group: RESULTS,
    load: async () => (await import('./commands/items.ts')).items,
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
]

/** `['journal', 'read']` of `['journal', 'read', '--typ', 'x']`: the command that was meant, as far as it is known. */
export function commandIn(argv: readonly string[]): string[] {
  const words: string[] = []
  let entries = CATALOGUE
  for (const word of argv) {
    const entry = entries.find(({ name }) => name === word)
    if (!entry) continue
    words.push(entry.name)
    if ('load' in entry) break
    entries = entry.commands
  }
  return words
}
