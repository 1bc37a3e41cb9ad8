import assert from 'node:assert/strict'
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isLong } from '../src/testing/long-tests.ts'
import { createDatabase } from '../src/testing/postgres.ts'

const BIN = fileURLToPath(new URL('../bin/unstuck.js', import.meta.url))
const skip = isLong ? false : 'it takes long: part of `npm run proof`'
const SMALL = ['--sections', '5', '--workers', '3', '--kills', '2', '--seed', '7']

test('the demo on SQLite: kills, a deploy and a zombie, and nothing lost or doubled', async () => {
  using folder = temporaryFolder()
  await assertDemo(['demo', '--json', ...SMALL], folder.path)
})

test(
  'the demo on PostgreSQL: kills, a deploy and a zombie, and nothing lost or doubled',
  { skip },
  async () => {
    using folder = temporaryFolder()
    const database = await createDatabase()
    try {
      await assertDemo(['demo', '--json', ...SMALL, '--db', database.url], folder.path)
    } finally {
      await database.drop()
    }
  },
)

test('Ctrl-C ends the demo and leaves no process behind', async () => {
  using folder = temporaryFolder()
  const demo = start(['demo', ...SMALL], folder.path)
  await waitUntilWorking(folder.path)
  demo.kill('SIGINT')
  const [code] = await exited(demo)
  assert.equal(code, 1)
  assert.deepEqual(processesOf(folder.path), [])
})

test('a demo that is itself killed -9 leaves no process behind for long', { skip }, async () => {
  using folder = temporaryFolder()
  const demo = start(['demo', ...SMALL], folder.path)
  await waitUntilWorking(folder.path)
  demo.kill('SIGKILL')
  await waitUntil(() => processesOf(folder.path).length === 0, 'the workers to end')
})

async function assertDemo(args: readonly string[], cwd: string): Promise<void> {
  const demo = start(args, cwd)
  const [[code], stdout, stderr] = await Promise.all([
    exited(demo),
    text(demo.stdout!),
    text(demo.stderr!),
  ])
  const report = JSON.parse(stdout) as Record<string, unknown>
  const seen = `${stdout}\n${stderr}`
  assert.equal(report['lost'], 0, seen)
  assert.equal(report['doubled'], 0, seen)
  assert.equal(report['kills'], 2, seen)
  assert.equal(report['deploys'], 1, seen)
  assert.equal(report['zombies'], 1, seen)
  assert.ok((report['lateWritesRefused'] as number) >= 1, seen)
  assert.ok((report['pages'] as number) >= 25, seen)
  assert.ok((report['items'] as number) > (report['pages'] as number), seen)
  // How fast it is on a machine that runs other tests as well says little; `npm run demo` and the crash test are strict.
  const slowest = report['slowestClaimableMs'] as number
  assert.equal(report['ok'], slowest < 1_000, seen)
  assert.equal(code, report['ok'] ? 0 : 1, seen)
  assert.deepEqual(processesOf(cwd), [])
}

function start(args: readonly string[], cwd: string): ChildProcess {
  return spawn(process.execPath, [BIN, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
}

function exited(child: ChildProcess): Promise<[code: number | null, signal: string | null]> {
  child.stdout?.resume()
  child.stderr?.resume()
  return new Promise((resolve) => child.once('close', (...end) => resolve(end)))
}

/** Every process whose command line names the folder: all workers do, by where their journals go. */
function processesOf(folder: string): string[] {
  const all = execFileSync('ps', ['-axo', 'pid=,args='], { encoding: 'utf8' }).split('\n')
  return all.filter((line) => line.includes(folder))
}

/** The parent and its workers are there. */
async function waitUntilWorking(folder: string): Promise<void> {
  await waitUntil(() => processesOf(folder).length >= 4, 'the workers to start')
  await sleep(1_500)
}

async function waitUntil(condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 150_000
  while (!condition()) {
    assert.ok(performance.now() < end, `waited in vain for ${what}`)
    await sleep(100)
  }
}

function temporaryFolder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'unstuck-demo-'))
  const remove = (): void => rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  return { path, [Symbol.dispose]: remove }
}
