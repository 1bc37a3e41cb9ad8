import type { Feature } from '../../contracts/feature.ts'

/** Wrapped commands: `unstuck run`, `unstuck work --exec`, and their output. */
export const commands: Feature = {
  name: 'commands',
  commands: [
    {
      name: 'run',
      summary: 'Wrap a command: one copy at a time, restarts, history, checkpoints over HTTP.',
      group: 'Work:',
      before: 'enqueue',
      load: () => import('./cli/run.ts'),
    },
    {
      name: 'logs',
      summary: 'Print the output of the command of a run, and follow it.',
      group: 'Results and logs:',
      load: () => import('./cli/logs.ts'),
    },
  ],
  runLog: async () => (await import('./run-log.ts')).COMMAND_LOG,
  checks: async () => [(await import('./check.ts')).checkTracking()],
  securityChecks: async (_, secrets) => [(await import('./check.ts')).checkEnvironment(secrets)],
  execMode: async () => ({
    options: (await import('./cli/options.ts')).commandOptions,
    run: async (...given) => (await import('./cli/exec-mode.ts')).workOnCommands(...given),
    onTargets: async (...given) => (await import('./cli/exec-targets.ts')).workOnTargets(...given),
  }),
}
