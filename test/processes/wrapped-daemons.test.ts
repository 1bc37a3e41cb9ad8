import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { newId } from '../../src/core/model/id.ts'
import { cgroupsOf, removeCgroups, startInCgroup } from '../../src/lib/process/cgroup.ts'
import { startWithLimitTag } from '../../src/lib/process/limit-tag.ts'
import { CLI, ENGINES, kill, ProcessTestContext, waitFor, type Program } from './harness.ts'
import { killWithWatchdog, waitForWatchdog, overlaps, ticks } from './wrapped.ts'

/**
 * A command that starts a daemon by the book: it forks twice, opens a session, closes every descriptor, leaves the folder
 * and drops its environment. The daemon ignores SIGTERM. Both tick into a file; the command ends when told to.
 */
const DAEMON = `
import os, signal, sys, time
stage, copy, who, how = sys.argv[1:5]
def tick():
    with open(stage + '/ticks', 'a') as file: file.write(f'{copy} {who} {time.time():.6f}\\n')
if who == 'daemon':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(stage + '/daemons', 'a') as file: file.write(f'{os.getpid()}\\n')
elif os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir('/')
        os.closerange(0, 1024)
        os.execve(sys.executable, [sys.executable, os.path.abspath(__file__), stage, copy, 'daemon', how], {})
    os._exit(0)
else:
    os.wait()
    while True:
        try:
            if f'{copy} daemon ' in open(stage + '/ticks').read(): break
        except FileNotFoundError: pass
        time.sleep(0.01)
    print('daemon is up', flush=True)
    if how == 'ends': sys.exit(0)
while True:
    tick()
    time.sleep(0.005)
`

/** The interpreter itself: a shim in front of it would need a PATH. */
const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
  encoding: 'utf8',
}).trim()

class DaemonTestContext implements AsyncDisposable {
  readonly base: ProcessTestContext
  readonly #under: readonly string[]
  #copies = 0

  private constructor(ctx: ProcessTestContext, under: readonly string[]) {
    this.base = ctx
    this.#under = under
    writeFileSync(join(ctx.folder, 'daemon.py'), DAEMON)
  }

  static async create(under: readonly string[] = []): Promise<DaemonTestContext> {
    return new DaemonTestContext(await ProcessTestContext.create(ENGINES[0]!), under)
  }

  run(how: 'ends' | 'stays', ...flags: string[]): Program {
    const { folder } = this.base
    const command = [PYTHON, join(folder, 'daemon.py'), folder, `${++this.#copies}`, 'leader', how]
    const flagged = ['--kill-timeout', '300ms', ...flags, '--', ...command]
    return this.base.start([CLI, 'run', 'portal', ...flagged], { under: this.#under })
  }

  daemons(): number[] {
    try {
      return readFileSync(join(this.base.folder, 'daemons'), 'utf8').trim().split('\n').map(Number)
    } catch {
      return []
    }
  }

  liveDaemons(): number[] {
    return this.daemons().filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(this.base.folder)
      } catch {
        return false
      }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.liveDaemons()) kill(pid, 'SIGKILL')
    await this.base[Symbol.asyncDispose]()
  }
}

const HAS_CGROUP = ((): boolean => {
  const tag = { processTag: `test-${process.pid}`, execution: 'probe' }
  const isAllowed = startInCgroup(tag, () => {})
  removeCgroups(tag)
  return isAllowed
})()
const HAS_LIMIT = startWithLimitTag({ processTag: 'test', execution: 'probe' }, () => {})

/** Hides the cgroup file system from a program, where one could be used; null: that is not allowed here. */
const UNSHARE = ['unshare', '--map-root-user', '--mount', 'sh', '-c']
const WITHOUT_CGROUP = ((): string[] | null => {
  if (!HAS_CGROUP) return []
  const under = [...UNSHARE, 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', 'sh']
  try {
    execFileSync(under[0]!, [...under.slice(1), 'true'], { stdio: 'ignore' })
    return under
  } catch {
    return null
  }
})()

const noCgroup = HAS_CGROUP ? false : 'cgroup v2 is not writable here'
const noFallback =
  WITHOUT_CGROUP === null
    ? 'cgroups cannot be hidden from a program here'
    : !HAS_LIMIT && 'prlimit is not there'

for (const { name, under, skip, tracking } of [
  { name: 'in a cgroup', under: [], skip: noCgroup, tracking: 'cgroup' },
  { name: 'without a cgroup', under: WITHOUT_CGROUP ?? [], skip: noFallback, tracking: 'limit' },
]) {
  test(
    `${name}: a daemon that dropped everything it could ends with its command`,
    { skip },
    async () => {
      await using set = await DaemonTestContext.create(under)
      const program = set.run('ends', '--json')
      assert.equal(await program.waitForExit(), 0, program.output)
      assert.equal(set.daemons().length, 1)
      assert.deepEqual(set.liveDaemons(), [])
      assert.match(program.output, new RegExp(`"tracking": ?"${tracking}"`))
    },
  )

  test(
    `${name}: Unstuck and its watchdog killed -9, the next copy does not overlap with the old daemon`,
    { skip },
    async () => {
      await using set = await DaemonTestContext.create(under)
      const first = set.run('stays')
      await first.waitForOutput('daemon is up')
      await killWithWatchdog(first)
      const then = ticks(set.base).length
      await waitFor('the orphans go on', () => ticks(set.base).length > then + 20)
      const second = set.run('stays')
      await second.waitForOutput('daemon is up')
      assert.match(second.output, /ended \d+ process(es)? that an earlier copy had left/)
      second.signal('SIGTERM')
      assert.equal(await second.waitForExit(), 75, second.output)
      assert.equal(set.daemons().length, 2)
      assert.deepEqual(set.liveDaemons(), [])
      assert.deepEqual(overlaps(ticks(set.base)), [])
    },
  )

  test(
    `${name}: the watchdog alone killed -9, the daemon ends with the command`,
    { skip },
    async () => {
      await using set = await DaemonTestContext.create(under)
      const program = set.run('stays')
      await program.waitForOutput('daemon is up')
      kill(await waitForWatchdog(program), 'SIGKILL')
      await program.waitForExit()
      assert.equal(set.daemons().length, 1)
      assert.deepEqual(set.liveDaemons(), [])
    },
  )
}

test('where a daemon cannot be found, the output states it at the start and claims nothing at the end', async (t) => {
  if (skipped(t)) return
  await using set = await DaemonTestContext.create([...WITHOUT_CGROUP!, 'env', 'PATH=/nonexistent'])
  const program = set.run('ends')
  assert.equal(await program.waitForExit(), 0, program.output)
  assert.match(program.output, /a process that clears its environment .* cannot be found here/)
  assert.match(program.output, /No process that Unstuck can see is left\./)
})

test(
  'no cgroup is left behind, also when the program is not there',
  { skip: noCgroup },
  async () => {
    await using set = await DaemonTestContext.create()
    const missing = set.base.unstuck('run', 'portal', '--', '/nonexistent/program')
    assert.equal(await missing.waitForExit(), 127)
    assert.equal(await set.run('ends').waitForExit(), 0)
    const guard = (await (await set.base.store()).sourceLocks('portal'))[0]
    assert.deepEqual(cgroupsOf(guard!), [])
  },
)

function skipped(t: TestContext): boolean {
  if (WITHOUT_CGROUP === null) t.skip('cgroups cannot be hidden from a program here')
  return WITHOUT_CGROUP === null
}

test(
  'empty cgroups that a kill -9 left are removed by any later command',
  { skip: noCgroup },
  () => {
    const [old, fresh] = ['old', 'fresh'].map((execution) => ({ processTag: newId(), execution }))
    for (const tag of [old!, fresh!]) startInCgroup(tag, () => {})
    const then = Date.now() / 1_000 - 120
    for (const group of cgroupsOf(old!)) utimesSync(group, then, then)

    removeCgroups({ processTag: 'another' })

    assert.deepEqual(cgroupsOf(old!), [])
    assert.equal(cgroupsOf(fresh!).length, 1, 'its command may be just starting')
    removeCgroups(fresh!)
  },
)
