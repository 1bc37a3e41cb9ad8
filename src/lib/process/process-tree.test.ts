import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { readProcessStat } from '../../core/host/identity.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { endTree } from './end-tree.ts'
import {
  tagVariable,
  descendants,
  findTree,
  isAlive,
  memoryBytesOf,
  signalGroup,
  type ProcessRef,
  type TreeRoots,
} from './process-tree.ts'

/** A command with a cookie of its own, in a session of its own. Prints a line when it is up. */
class TestCommand implements AsyncDisposable {
  readonly cookie = Math.random().toString(16).slice(2)
  readonly child: ChildProcess
  readonly leader: ProcessRef

  constructor(script: string, execution = 'one') {
    this.child = spawn('bash', ['-c', script], {
      detached: true,
      env: { PATH: process.env['PATH'], [tagVariable(this.cookie)]: execution },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = this.child.pid!
    this.leader = { pid, startTicks: readProcessStat(pid)!.startTicks }
  }

  async waitUntilReady(): Promise<this> {
    await once(this.child.stdout!, 'data')
    return this
  }

  get roots(): TreeRoots {
    return { processTag: this.cookie }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const roots = { ...this.roots, leader: this.leader, known: descendants(this.leader.pid) }
    await endTree(roots, { killTimeoutMs: 0, clock: REAL_CLOCK })
  }
}

/** Waits until as many are there as a script starts: it prints before the last of them have come so far. */
async function waitForMembers(
  count: number,
  find: () => readonly ProcessRef[],
): Promise<readonly ProcessRef[]> {
  let found = find()
  for (let looks = 0; found.length !== count && looks < 1_000; looks++) {
    await sleep(20)
    found = find()
  }
  assert.equal(found.length, count)
  return found
}

const pids = (members: readonly ProcessRef[]): number[] =>
  members.map(({ pid }) => pid).sort((a, b) => a - b)

test('a process that left the group and lost its parent is found by its process tag', async () => {
  await using command = await new TestCommand(
    '(setsid sleep 60 &) ; echo up; sleep 60; true',
  ).waitUntilReady()
  // The shell, its sleep, and the one that left.
  const found = await waitForMembers(3, () => findTree(command.roots))
  assert.ok(!pids(found).includes(process.pid))
})

test('a process that cleared its environment is found by its session, or by an earlier scan', async () => {
  await using command = await new TestCommand(
    'env -i sleep 61 & env -i setsid sleep 62 & echo up; wait',
  ).waitUntilReady()
  const isBare = ({ pid }: ProcessRef): boolean => readFileSync(`/proc/${pid}/environ`).length === 0
  await waitForMembers(2, () => descendants(command.leader.pid).filter(isBare))
  const known = descendants(command.leader.pid)
  process.kill(command.leader.pid, 'SIGKILL')
  await once(command.child, 'exit')
  const { cookie, leader } = command
  assert.equal(findTree({ processTag: cookie }).length, 0, 'no cookie is left')
  assert.equal(findTree({ processTag: cookie, leader }).length, 1, 'one is still in the session')
  assert.equal(
    findTree({ processTag: cookie, leader, known }).length,
    2,
    'the other was seen before',
  )
  assert.equal(
    await endTree({ processTag: cookie, leader, known }, { killTimeoutMs: 0, clock: REAL_CLOCK }),
    2,
  )
  assert.equal(known.some(isAlive), false)
})

test('a process that only shares a session with a tagged one is left alone, and so are excluded ones', async () => {
  const variable = tagVariable('copied')
  const script = `sleep 71 & ${variable}=x sleep 72 & echo up; wait`
  await using shell = await new TestCommand(script).waitUntilReady()
  await waitForMembers(3, () => findTree(shell.roots))
  // Neither the shell nor its other child.
  const [copied] = await waitForMembers(1, () => findTree({ processTag: 'copied' }))
  assert.deepEqual(findTree({ processTag: 'copied', exclude: copied!.pid }), [])
})

test('what shares a session without a leader with this process is left alone', async () => {
  const search = `
    const { spawn } = await import('node:child_process')
    const { findTree, tagVariable } = await import(${JSON.stringify(import.meta.resolve('./process-tree.ts'))})
    const options = { stdio: 'ignore', env: { ...process.env, [tagVariable('copied')]: 'x' } }
    const copied = spawn('sleep', ['74'], options)
    const other = spawn('sleep', ['75'], { stdio: 'ignore' })
    const found = findTree({ processTag: 'copied' }).map(({ pid }) => pid)
    for (const one of [copied, other]) one.kill()
    console.log(JSON.stringify({ found, copied: copied.pid }))`
  const quoted = JSON.stringify(process.execPath)
  // The shell that opened the session ends first, as that of a detached build does.
  const script = `(sleep 0.01; while kill -0 $$ 2>/dev/null; do sleep 0.01; done; ${quoted} --input-type=module) <&0 &`
  const child = spawn('bash', ['-c', script], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(search)
  const { found, copied } = JSON.parse(await text(child.stdout)) as Record<string, unknown>
  assert.deepEqual(found, [copied])
})

test('children that a thread has started are descendants as well', async () => {
  const started = `require("child_process").spawn("sleep", ["73"]); console.log("up")`
  const program = `new (require("worker_threads").Worker)(${JSON.stringify(started)}, { eval: true })`
  await using command = await new TestCommand(
    `exec "${process.execPath}" -e '${program}'`,
  ).waitUntilReady()
  await waitForMembers(2, () => descendants(command.leader.pid))
})

test('only processes of the given execution are found, not those of a similar command', async () => {
  await using command = await new TestCommand('echo up; sleep 60; true', 'one').waitUntilReady()
  await waitForMembers(2, () => findTree({ processTag: command.cookie, execution: 'one' }))
  assert.equal(findTree({ processTag: command.cookie, execution: 'on' }).length, 0)
  assert.equal(findTree({ processTag: command.cookie.slice(0, -1) }).length, 0)
})

test('a reused pid is not a member', async () => {
  await using stranger = await new TestCommand('echo up; sleep 60').waitUntilReady()
  const { pid, startTicks } = stranger.leader
  const before = { pid, startTicks: startTicks - 1 }
  assert.equal(isAlive(before), false)
  assert.equal(signalGroup(before, 'SIGKILL'), false)
  const roots = { processTag: 'none', leader: before, known: [before] }
  assert.equal(await endTree(roots, { killTimeoutMs: 100, clock: REAL_CLOCK }), 0)
  assert.equal(isAlive(stranger.leader), true)
})

test('a process that handles SIGTERM is not killed, one that ignores it is, and new children of a dying process are ended too', async () => {
  await using polite = await new TestCommand(
    'trap "exit 0" TERM; echo up; while :; do sleep 0.01; done',
  ).waitUntilReady()
  const roots = { ...polite.roots, leader: polite.leader }
  assert.equal(await endTree(roots, { killTimeoutMs: 5_000, clock: REAL_CLOCK }), 0)
  // Each of them is replaced by its sibling as soon as it dies.
  const twins = `
    spawn() { setsid bash -c "$code" twin $1 & }
    export code='trap "" TERM; while kill -0 $1 2>/dev/null; do sleep 0.002; done; exec setsid bash -c "$code" twin $$'
    (trap "" TERM; spawn $BASHPID; sleep 60) & echo up; wait`
  await using deaf = await new TestCommand(twins).waitUntilReady()
  const killed = await endTree(deaf.roots, { killTimeoutMs: 50, clock: REAL_CLOCK })
  assert.ok(killed >= 2)
  await sleep(50)
  assert.deepEqual(findTree(deaf.roots), [])
})

test('the memory of a command is that of all its processes', async () => {
  const eater = `const held = Buffer.alloc(60e6, 1); console.log(held.length); setInterval(() => {}, 1e9)`
  const node = JSON.stringify(process.execPath)
  await using command = await new TestCommand(
    `${node} -e '${eater}' & ${node} -e '${eater}' & wait`,
  ).waitUntilReady()
  const look = (): number => memoryBytesOf(findTree(command.roots)) ?? 0
  // One of them is up; the other takes its part a moment sooner or later.
  for (let looks = 0; looks < 300 && look() < 120e6; looks++) await sleep(50)
  const bytes = look()
  assert.ok(bytes > 120e6 && bytes < 500e6, String(bytes))
})
