// Runs `unstuck work` under PM2.
//
//   pm2 start ecosystem.config.cjs
//   pm2 save                  starts it after a reboot, if `pm2 startup` was run once
//   pm2 logs __NAME__
//
// Each start begins a run if none is live. Add '--no-start' to the arguments to take up only what
// `unstuck enqueue` has queued. The settings, and those for a command in `unstuck run`, are explained in
// node_modules/unstuck/docs/guides/supervisors.md.
module.exports = {
  apps: [
    {
      name: '__NAME__',
      cwd: __dirname,
      // The program itself. npm or a shell in between would not pass signals on.
      script: '__BIN__',
      args: ['work', '__MODULE__', '--workers', '__WORKERS__'],
      interpreter: 'node', // 24.15 or newer
      // Unstuck starts and watches its own processes, so PM2 manages one process.
      exec_mode: 'fork',
      instances: 1,
      // What PM2 adds to the process keeps a failed one from ending, and so from being restarted.
      pmx: false,
      // A stop signal goes to the main process alone, which lets the others save their pages and end.
      treekill: false,
      // Unstuck ends within 25 s; around a command, within 30 s. PM2 kills after 1.6 s by default.
      kill_timeout: 40000,
      // 1 s after a crash, longer each time, 15 s at most.
      exp_backoff_restart_delay: 1000,
      // Not started again: wrong usage, something needs attention, the schema is too new, stopped on request.
      stop_exit_codes: [2, 3, 9, 75],
    },
  ],
}
