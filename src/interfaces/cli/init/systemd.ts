import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import {
  NO_RESTART_CODES,
  KILL_AFTER_SECONDS,
  STOPPED_CODE,
  type Facts,
  type Supervisor,
} from './facts.ts'

/** Long enough for an outage that passes: a restart would only cost the pages in hand. */
const WATCHDOG_SECONDS = 300

export const systemd: Supervisor = {
  files: (facts) => [{ path: unitOf(facts), text: unit(facts), about: 'for systemd' }],
  next: (facts) => [
    `sudo cp ${unitOf(facts)} /etc/systemd/system/`,
    'sudo systemctl daemon-reload',
    `sudo systemctl enable --now ${facts.name}`,
  ],
}

function unitOf({ name }: Facts): string {
  return `${name}.service`
}

function unit(facts: Facts): string {
  const { folder, module, name, workers, node, bin, user } = facts
  const words = [bin, 'work', module, '--workers', String(workers)]
  return `# Runs \`unstuck work\` under systemd. To install it:
#
#   sudo cp ${unitOf(facts)} /etc/systemd/system/
#   sudo systemctl daemon-reload
#   sudo systemctl enable --now ${name}
#   journalctl -u ${name} -f
#
# Each start begins a run if none is live. Add --no-start to ExecStart to take up only what \`unstuck enqueue\` has
# queued. The settings, and those for a command in \`unstuck run\`, are explained in
# node_modules/unstuck/docs/supervisors.md.

[Unit]
Description=unstuck work ${withoutSpecifiers(module)}
Wants=network-online.target
After=network-online.target
# Never give up: a database that is down comes back. What cannot get better is not started again, see below.
StartLimitIntervalSec=0

[Service]
# Unstuck says itself that it is ready, how far it is (systemctl status), and that it stops; and that it is alive, as
# long as the database accepts its signs of life. After ${WATCHDOG_SECONDS / 60} minutes without one it is started anew. It says so by
# systemd-notify, another process: hence "all".
Type=notify
NotifyAccess=all
WatchdogSec=${WATCHDOG_SECONDS}
User=${withoutSpecifiers(user)}
WorkingDirectory=${withoutSpecifiers(folder)}
# Secrets, such as UNSTUCK_DB=postgres://…, one per line:
# EnvironmentFile=${withoutSpecifiers(folder)}/.env
# Node itself: npm or a shell in between would keep signals from it. This is the Node that wrote this file.
ExecStart=${quoteProgram(node)} ${words.map(quoteWord).join(' ')}

# A stop is told to the main process alone, which has the others save their pages and end within ${STOP_DEADLINE_MS / 1_000} s.
# Whatever is left after that is killed.
KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec=${KILL_AFTER_SECONDS}

# A command of \`unstuck run\` gets a cgroup of its own below this unit's, so that no daemon of it is missed.
Delegate=yes

# Started again after a crash, but not after wrong usage (2), with something left for a person (3), or with a schema
# that is too new (9). ${STOPPED_CODE} is a stop with work left: a good end.
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=${NO_RESTART_CODES.join(' ')}
SuccessExitStatus=${STOPPED_CODE}
# A worker that ran out of memory is started again by Unstuck. The others need not stop for it.
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
`
}

/** In a unit, % begins a specifier. */
function withoutSpecifiers(text: string): string {
  return text.replaceAll('%', '%%')
}

/** The first word of a command line: no variables are looked for in it. */
function quoteProgram(text: string): string {
  return `"${withoutSpecifiers(text).replaceAll(/[\\"]/g, String.raw`\$&`)}"`
}

function quoteWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : quoteProgram(text).replaceAll('$', '$$$$')
}
