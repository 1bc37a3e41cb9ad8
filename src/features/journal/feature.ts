import type { Feature } from '../../contracts/feature.ts'

/** The journals that workers write. */
export const journal: Feature = {
  name: 'journal',
  runLog: async () => (await import('./run-log.ts')).JOURNAL_LOG,
  commands: [
    {
      name: 'journal',
      summary: 'Read, follow or compress the journals of workers.',
      group: 'Results and logs:',
      commands: [
        {
          name: 'read',
          summary: 'Print the events of journals by time, all or filtered, or their counts.',
          load: () => import('./cli/read.ts'),
        },
        {
          name: 'tail',
          summary: 'Print the last events of journals, and follow them.',
          load: () => import('./cli/tail.ts'),
        },
        {
          name: 'compress',
          summary: 'Compress the journal of a worker that has ended into a .zst file.',
          load: () => import('./cli/compress.ts'),
        },
      ],
    },
  ],
}
