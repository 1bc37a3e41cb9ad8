import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { readProcessTable, signalsFinding, type ProcessTable } from './platform.ts'

/** From PID 1 down to the parent of unstuck, as they stand in /proc. */
function table(...argvs: string[][]): ProcessTable {
  const processes = argvs.map((argv, n) => ({ pid: n + 1, argv }))
  return { first: processes[0] ?? null, ancestors: processes.toReversed() }
}

const SWALLOWED: [string, RegExp, ProcessTable][] = [
  [
    'npm as PID 1, by the title it gives itself',
    /^PID 1 of this container is npm: /,
    table(['npm run start'], ['sh', '-c', 'unstuck work crawl.ts']),
  ],
  [
    'npm as PID 1, by its script',
    /is npm: /,
    table(['node', '/usr/local/lib/node_modules/npm/bin/npm-cli.js', 'start']),
  ],
  ['npx', /is npx: /, table(['/usr/local/bin/node', '/usr/local/bin/npx', 'unstuck', 'work'])],
  ['yarn', /is yarn: /, table(['node', '/opt/yarn-v1.22.22/bin/yarn.js', 'start'])],
  ['pnpm', /is pnpm: /, table(['node', '/usr/lib/node_modules/pnpm/bin/pnpm.cjs', 'work'])],
  [
    'the shell form of CMD',
    /is sh -c: /,
    table(['/bin/sh', '-c', 'echo hello; unstuck work crawl.ts']),
  ],
  ['a login shell', /is bash -c: /, table(['/bin/bash', '-lc', 'unstuck work crawl.ts; true'])],
  [
    'an entrypoint script without exec',
    /is the shell script entrypoint\.sh: /,
    table(['/bin/sh', '-e', '/app/entrypoint.sh', 'work']),
  ],
  [
    'npm below an init that passes signals to its child alone',
    /^npm is between tini, PID 1, and unstuck: /,
    table(['/sbin/tini', '--', 'npm', 'start'], ['npm start'], ['sh', '-c', 'unstuck work c.ts']),
  ],
  [
    "a shell below docker's own init",
    /^sh -c is between docker-init/,
    table(['/sbin/docker-init', '--', 'sh', '-c', 'a; b'], ['sh', '-c', 'a; b']),
  ],
]

for (const [what, found, processes] of SWALLOWED) {
  test(`signals end in ${what}`, () => {
    const finding = signalsFinding(processes)
    assert.equal(finding.result, 'warning')
    assert.match(finding.found, found)
    assert.match(finding.fix ?? '', /exec form/)
  })
}

const DELIVERED: [string, ProcessTable][] = [
  ['unstuck itself is PID 1', table(['node', '/app/node_modules/.bin/unstuck', 'work'])],
  ['an init stands right above it', table(['/sbin/tini', '--', 'unstuck', 'work', 'c.ts'])],
  [
    'a person types into a terminal',
    table(['/usr/lib/systemd/systemd', '--system'], ['sshd: me'], ['-bash'], ['npm exec unstuck']),
  ],
  ['a service of systemd runs npm', table(['/sbin/init', 'splash'], ['npm start'], ['sh', '-c'])],
  ['a person types into a container', table(['bash'], ['npm exec unstuck doctor'])],
  ['a login shell is PID 1', table(['/bin/bash', '-l'])],
  [
    'it was put into a container whose PID 1 is unstuck',
    {
      first: { pid: 1, argv: ['node', '/app/node_modules/.bin/unstuck', 'work'] },
      ancestors: [{ pid: 77, argv: ['sh', '-c', 'npx unstuck doctor'] }],
    },
  ],
  ['something else started a script', table(['/usr/bin/agent'], ['bash', '-c', 'unstuck doctor'])],
  ['PID 1 may not be seen', table([])],
]

for (const [what, processes] of DELIVERED) {
  test(`signals arrive when ${what}`, () => {
    assert.equal(signalsFinding(processes).result, 'ok')
  })
}

test('without /proc nothing is claimed', () => {
  assert.equal(signalsFinding({ first: null, ancestors: [] }).result, 'note')
})

test(
  'the table of this very process leads from its parent to the top',
  { skip: process.platform === 'linux' ? false : 'only Linux has /proc' },
  () => {
    const { first, ancestors } = readProcessTable()
    assert.equal(ancestors[0]?.pid, process.ppid)
    assert.ok(first && first.argv.length > 0)
    assert.equal(ancestors.filter(({ pid }) => pid === 1).length <= 1, true)
  },
)

const UNSHARE = ['--user', '--map-root-user', '--pid', '--fork', '--mount-proc']
const canUnshare = spawnSync('unshare', [...UNSHARE, 'true']).status === 0

test(
  'in a container of its own, a shell as PID 1 is found and an exec is not',
  { skip: canUnshare ? false : 'this system does not let the tests make a pid namespace' },
  () => {
    using folder = temporaryFolder()
    const bin = fileURLToPath(new URL('../../../../bin/unstuck.js', import.meta.url))
    const look = (script: string): string => {
      const { stdout } = spawnSync('unshare', [...UNSHARE, 'sh', '-c', script], {
        cwd: folder.path,
        env: { PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, HOME: folder.path },
        encoding: 'utf8',
      })
      const { checks } = JSON.parse(stdout) as { checks: { check: string; found: string }[] }
      return checks.find(({ check }) => check === 'signals')!.found
    }
    const doctor = `node ${bin} doctor --json --db sqlite:${join(folder.path, 'none.db')}`

    assert.match(look(`${doctor}; true`), /^PID 1 of this container is sh -c: /)
    assert.match(look(`exec ${doctor}`), /^PID 1 is unstuck\.js: /)
  },
)
