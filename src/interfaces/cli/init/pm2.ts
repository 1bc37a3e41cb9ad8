import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import {
  NO_RESTART_CODES,
  KILL_AFTER_SECONDS,
  STOPPED_CODE,
  type Facts,
  type Supervisor,
} from './facts.ts'

const PATH = 'ecosystem.config.cjs'

export const pm2: Supervisor = {
  files: (facts) => [{ path: PATH, text: ecosystem(facts), about: 'for PM2' }],
  next: () => [`pm2 start ${PATH}`, 'pm2 save'],
}

// Code 0 is not among the codes that stop: PM2 takes a process killed by a signal for one that ended with 0.
function ecosystem({ name, module, workers, binFromFolder }: Facts): string {
  const args = ['work', module, '--workers', String(workers)]
  return `// Runs \`unstuck work\` under PM2.
//
//   pm2 start ${PATH}
//   pm2 save                  it is back after a reboot, if \`pm2 startup\` was done once
//   pm2 logs ${name}
//
// Each start begins a run if none is live. Add '--no-start' to the arguments to take up only what
// \`unstuck enqueue\` has queued. The settings, and those for a command in \`unstuck run\`, are explained in
// node_modules/unstuck/docs/supervisors.md.
module.exports = {
  apps: [
    {
      name: ${quoted(name)},
      cwd: __dirname,
      // The program itself. npm or a shell in between would keep signals from it.
      script: ${quoted(binFromFolder)},
      args: [${args.map(quoted).join(', ')}],
      interpreter: 'node', // 24.15 or newer
      // Unstuck starts and watches its own processes, so PM2 has one to look after.
      exec_mode: 'fork',
      instances: 1,
      // What PM2 would put into the process keeps one that failed from ending, and so from being started again.
      pmx: false,
      // A stop is told to the main process alone. It has the others save their pages and end.
      treekill: false,
      // Unstuck ends within ${STOP_DEADLINE_MS / 1_000} s; around a command, within 30 s. PM2 kills after 1.6 s if nothing else is said.
      kill_timeout: ${KILL_AFTER_SECONDS * 1_000},
      // 1 s after a crash, longer each time, 15 s at most.
      exp_backoff_restart_delay: 1000,
      // Not started again: wrong usage, something left for a person, a schema that is too new, stopped by a person.
      stop_exit_codes: [${[...NO_RESTART_CODES, STOPPED_CODE].join(', ')}],
    },
  ],
}
`
}

function quoted(text: string): string {
  const json = JSON.stringify(text)
  return json.includes("'") || json.includes('\\') ? json : `'${json.slice(1, -1)}'`
}
