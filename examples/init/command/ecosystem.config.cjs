// Runs a command with `unstuck run` under PM2.
//
//   pm2 start ecosystem.config.cjs
//   pm2 save                  starts it after a reboot, if `pm2 startup` was run once
//   pm2 logs __NAME__
//
// Unstuck starts the command again __EVERY__ after each end, and restarts it after a failure. The settings are explained
// in node_modules/unstuck/docs/guides/supervisors.md.
module.exports = {
  apps: [
    {
      name: '__NAME__',
      cwd: __dirname,
      // The program itself. npm or a shell in between would not pass signals on.
      script: '__BIN__',
      args: [__ARGS__],
      interpreter: 'node', // 24.15 or newer
      // Unstuck starts and watches the command, so PM2 manages one process.
      exec_mode: 'fork',
      instances: 1,
      // What PM2 adds to the process keeps a failed one from ending, and so from being restarted.
      pmx: false,
      // A stop signal goes to the main process alone, which passes it on to the command.
      treekill: false,
      // Unstuck kills what is left of the command after 30 s (--kill-timeout). PM2 kills after 1.6 s by default.
      kill_timeout: 40000,
      // 1 s after a crash of Unstuck, longer each time, 15 s at most.
      exp_backoff_restart_delay: 1000,
      // PM2 starts Unstuck again after a kill, which it reports as 0, and after temporary errors: a copy runs elsewhere
      // (5), a lost lease (6), a database that is down (7). After all other codes it needs attention, or it was stopped.
      stop_exit_codes: Array.from({ length: 255 }, (_, n) => n + 1).filter(
        (code) => code < 5 || code > 7,
      ),
    },
  ],
}
