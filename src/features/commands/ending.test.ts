import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shellExitCode, interpretExit, type CommandExit, type ExitOutcome } from './ending.ts'

const EXITED: CommandExit = { exitCode: 0, signal: null, oomKills: 0, stop: null, reported: null }
const KILLED: CommandExit = { ...EXITED, exitCode: null, signal: 'SIGKILL' }
const ASKED = { why: 'asked', by: 'SIGTERM' } as const

const CASES: readonly [string, CommandExit, ExitOutcome['run'], RegExp][] = [
  ['exit code 0 is a success', EXITED, 'succeed', /^exit code 0$/],
  ['any other is a crash', { ...EXITED, exitCode: 3 }, 'crash', /^exit code 3$/],
  ['a signal of another process is a crash', KILLED, 'crash', /by another process/],
  [
    'when the kernel reports a lack of memory, probably that',
    { ...KILLED, oomKills: 1 },
    'crash',
    /probably out of memory/,
  ],
  [
    'what was asked to stop is released',
    { ...KILLED, stop: ASKED },
    'release',
    /stopped by SIGTERM; ended by SIGKILL/,
  ],
  [
    'even with exit code 0: only /finish says that nothing is left',
    { ...EXITED, stop: ASKED },
    'release',
    /exit code 0/,
  ],
  [
    'what finished while it was asked to stop is finished',
    { ...EXITED, stop: ASKED, reported: 'finished' },
    'settled',
    /^finished/,
  ],
  [
    'what said that it failed has failed, whatever its exit code',
    { ...EXITED, reported: 'failed' },
    'settled',
    /reported a failure/,
  ],
  ['what asked for another try gets it', { ...EXITED, reported: 'again' }, 'settled', /again/],
  [
    'a lost lease counts before everything else',
    { ...KILLED, stop: { why: 'lease-lost' }, reported: 'finished' },
    'lost',
    /taken over/,
  ],
  [
    'a cancelled run stays cancelled',
    { ...KILLED, stop: { why: 'cancelled' } },
    'cancelled',
    /cancelled/,
  ],
  [
    'too long is a crash',
    { ...KILLED, stop: { why: 'max-duration', limitMs: 60_000 } },
    'crash',
    /timeout: longer than 60 s/,
  ],
  [
    'too much memory is a crash',
    { ...KILLED, stop: { why: 'max-memory', limit: 400 * 1_048_576, seen: 500 * 1_048_576 } },
    'crash',
    /500 MB of memory, more than 400 MB/,
  ],
  [
    'a ready that did not come is a crash',
    { ...KILLED, stop: { why: 'not-ready', limitMs: 30_000 } },
    'crash',
    /not ready within 30 s/,
  ],
  [
    'without its watchdog it is an orphan',
    { ...KILLED, stop: { why: 'watchdog-lost' } },
    'orphan',
    /watchdog process died/,
  ],
]
for (const [what, end, run, because] of CASES) {
  test(what, () => {
    const ending = interpretExit(end)
    assert.equal(ending.run, run)
    assert.match(ending.because, because)
  })
}

test('exit codes are passed on as a shell would', () => {
  const signals = { SIGKILL: 9, SIGTERM: 15 }
  assert.equal(shellExitCode({ exitCode: 7, signal: null }, signals), 7)
  assert.equal(shellExitCode({ exitCode: null, signal: 'SIGTERM' }, signals), 143)
  assert.equal(shellExitCode({ exitCode: null, signal: null }, signals), 1)
})
