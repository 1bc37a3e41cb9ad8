import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Secret } from '../../contracts/settings.ts'
import { removeCgroups } from '../../lib/process/cgroup.ts'
import { note, ok, warning, type Finding } from '../../contracts/finding.ts'
import { plural } from '../../presenters/format.ts'
import { isInherited } from './environment.ts'
import { startTagged, trackingGap, type Tracking } from './start-tagged.ts'

/** Starts a process that ends at once, and reports how processes of wrapped commands are tracked here. */
export function checkTracking(): Finding {
  const tag = { processTag: randomUUID(), execution: 'doctor' }
  try {
    return trackingFinding(startTagged(tag, () => spawnSync('true')).tracking)
  } finally {
    removeCgroups(tag)
  }
}

/** Reports whether all processes of a wrapped command are found when it ends. */
export function trackingFinding(tracking: Tracking): Finding {
  const gap = trackingGap(tracking)
  if (gap === null) {
    return ok(
      'processes',
      tracking === 'cgroup'
        ? 'Processes of wrapped commands are found by a cgroup of each command, daemons too.'
        : 'Processes of wrapped commands are found by a limit that they inherit, daemons too.',
    )
  }
  return note('processes', `${gap[0]!.toUpperCase()}${gap.slice(1)}.`, {
    why: 'Such a daemon of a command of `unstuck run` or `work --exec` would run beside the next copy.',
    fix:
      tracking === 'environment'
        ? 'Install util-linux (`prlimit`), or start unstuck where it can create cgroups: `Delegate=yes` in a systemd unit, `systemd-run --user --scope -p Delegate=yes unstuck run …` in a shell.'
        : null,
  })
}

/** Checks that no variable with a secret of the config is passed to wrapped commands. */
export function checkEnvironment(secrets: readonly Secret[], env = process.env): Finding {
  const values = new Set(secrets.map(({ value }) => value))
  const names = Object.keys(env).filter((name) => values.has(env[name] ?? '') && isInherited(name))
  if (names.length === 0) return ok('handed-on', 'No secret of the config reaches commands.')
  return warning('handed-on', `${plural(names.length, 'variable')} with secrets reach commands.`, {
    details: names,
    why: 'Commands of `unstuck run` and `work --exec` get the environment, without the variables that are Unstuck’s own by their name.',
    fix: 'Name them UNSTUCK_…_WEBHOOK, …_SECRET, …_SMTP, …_PASSWORD or …_TOKEN; UNSTUCK_DB for the database.',
  })
}
