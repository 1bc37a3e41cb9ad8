import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { removeCgroups } from '../../../core/host/cgroup.ts'
import { trackingGap, startTagged, type Tracking } from '../../../features/commands/start-tagged.ts'
import { note, ok, type Finding } from '../../../presenters/finding.ts'

/** How a process that `unstuck run` starts here would be tracked: tried out with one that ends at once. */
export function probeProcessTracking(): Tracking {
  const tag = { processTag: randomUUID(), execution: 'doctor' }
  try {
    return startTagged(tag, () => spawnSync('true')).tracking
  } finally {
    removeCgroups(tag)
  }
}

/** Whether every process of a wrapped command is found when the command ends. */
export function trackingFinding(tracking: Tracking): Finding {
  const gap = trackingGap(tracking)
  if (gap === null) {
    return ok(
      'processes',
      tracking === 'cgroup'
        ? 'Wrapped commands get a cgroup of their own: all their processes end with them.'
        : 'Processes of wrapped commands are found by a limit that they inherit, daemons too.',
    )
  }
  return note('processes', `${gap[0]!.toUpperCase()}${gap.slice(1)}.`, {
    why: 'A daemon that a command of `unstuck run` or `work --exec` starts so would run on beside its next copy.',
    mend:
      tracking === 'environment'
        ? 'Install util-linux (`prlimit`), or start unstuck where it may create cgroups: `Delegate=yes` in a systemd unit, `systemd-run --user --scope -p Delegate=yes unstuck run …` in a shell.'
        : null,
  })
}
