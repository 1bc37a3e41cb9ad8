import type { Feature } from '../../contracts/feature.ts'

/** Kills workers and verifies the result: of a command of the user, and of a built-in crawl. */
export const chaos: Feature = {
  name: 'chaos',
  commands: [
    {
      name: 'demo',
      summary: 'Crawl a built-in site, kill its workers with kill -9, and verify the result.',
      group: 'Work:',
      before: 'init',
      load: () => import('./cli/demo.ts'),
    },
    {
      name: 'chaos',
      summary:
        'Kill your own worker at random moments, and verify that nothing is lost or doubled.',
      group: 'Work:',
      load: () => import('./cli/chaos.ts'),
    },
  ],
}
