import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { readStat } from './identity.ts'
import { REAL_CLOCK } from './clock.ts'
import { endTree } from './end-tree.ts'
import {
  cookieVariable,
  descendants,
  findTree,
  isAlive,
  memoryOf,
  signalGroup,
  type Member,
  type Roots,
} from './process-tree.ts'

/** A command with a cookie of its own, in a session of its own. Prints a line when it is up. */
class Started implements AsyncDisposable {
  readonly cookie = Math.random().toString(16).slice(2)
  readonly child: ChildProcess
  readonly leader: Member

  constructor(script: string, execution = 'one') {
    this.child = spawn('bash', ['-c', script], {
      detached: true,
      env: { PATH: process.env['PATH'], [cookieVariable(this.cookie)]: execution },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const pid = this.child.pid!
    this.leader = { pid, startTicks: readStat(pid)!.startTicks }
  }

  async up(): Promise<this> {
    await once(this.child.stdout!, 'data')
    return this
  }

  get roots(): Roots {
    return { cookie: this.cookie }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const roots = { ...this.roots, leader: this.leader, known: descendants(this.leader.pid) }
    await endTree(roots, { killTimeoutMs: 0, clock: REAL_CLOCK })
  }
}

/** Waits until as many are there as a script starts: it prints before the last of them have come so far. */
async function until(count: number, look: () => readonly Member[]): Promise<readonly Member[]> {
  let found = look()
  for (let looks = 0; found.length !== count && looks < 1_000; looks++) {
    await sleep(20)
    found = look()
  }
  assert.equal(found.length, count)
  return found
}

const pids = (members: readonly Member[]): number[] =>
  members.map(({ pid }) => pid).sort((a, b) => a - b)

test('a process that left the group and lost its parent is found by its cookie', async () => {
  await using command = await new Started('(setsid sleep 60 &) ; echo up; sleep 60; true').up()
  // The shell, its sleep, and the one that left.
  const found = await until(3, () => findTree(command.roots))
  assert.ok(!pids(found).includes(process.pid))
})

test('one that threw its environment away is found by its session, or by having been seen', async () => {
  await using command = await new Started(
    'env -i sleep 61 & env -i setsid sleep 62 & echo up; wait',
  ).up()
  const isBare = ({ pid }: Member): boolean => readFileSync(`/proc/${pid}/environ`).length === 0
  await until(2, () => descendants(command.leader.pid).filter(isBare))
  const known = descendants(command.leader.pid)
  process.kill(command.leader.pid, 'SIGKILL')
  await once(command.child, 'exit')
  const { cookie, leader } = command
  assert.equal(findTree({ cookie }).length, 0, 'no cookie is left')
  assert.equal(findTree({ cookie, leader }).length, 1, 'one is still in the session')
  assert.equal(findTree({ cookie, leader, known }).length, 2, 'the other was seen before')
  assert.equal(await endTree({ cookie, leader, known }, { killTimeoutMs: 0, clock: REAL_CLOCK }), 2)
  assert.equal(known.some(isAlive), false)
})

test('who merely shares a session with one that carries the cookie is left alone, and so is whoever is spared', async () => {
  const variable = cookieVariable('copied')
  const script = `sleep 71 & ${variable}=x sleep 72 & echo up; wait`
  await using shell = await new Started(script).up()
  await until(3, () => findTree(shell.roots))
  // Neither the shell nor its other child.
  const [copied] = await until(1, () => findTree({ cookie: 'copied' }))
  assert.deepEqual(findTree({ cookie: 'copied', spare: copied!.pid }), [])
})

test('children that a thread has started are descendants as well', async () => {
  const started = `require("child_process").spawn("sleep", ["73"]); console.log("up")`
  const program = `new (require("worker_threads").Worker)(${JSON.stringify(started)}, { eval: true })`
  await using command = await new Started(`exec "${process.execPath}" -e '${program}'`).up()
  await until(2, () => descendants(command.leader.pid))
})

test('only the execution that is asked for, and never a command that merely looks alike', async () => {
  await using command = await new Started('echo up; sleep 60; true', 'one').up()
  await until(2, () => findTree({ cookie: command.cookie, execution: 'one' }))
  assert.equal(findTree({ cookie: command.cookie, execution: 'on' }).length, 0)
  assert.equal(findTree({ cookie: command.cookie.slice(0, -1) }).length, 0)
})

test('a number that was given to another process is nobody of ours', async () => {
  await using stranger = await new Started('echo up; sleep 60').up()
  const { pid, startTicks } = stranger.leader
  const before = { pid, startTicks: startTicks - 1 }
  assert.equal(isAlive(before), false)
  assert.equal(signalGroup(before, 'SIGKILL'), false)
  const roots = { cookie: 'none', leader: before, known: [before] }
  assert.equal(await endTree(roots, { killTimeoutMs: 100, clock: REAL_CLOCK }), 0)
  assert.equal(isAlive(stranger.leader), true)
})

test('who listens to SIGTERM is not killed, who is deaf is, and who starts another while it dies is no way out', async () => {
  await using polite = await new Started(
    'trap "exit 0" TERM; echo up; while :; do sleep 0.01; done',
  ).up()
  const roots = { ...polite.roots, leader: polite.leader }
  assert.equal(await endTree(roots, { killTimeoutMs: 5_000, clock: REAL_CLOCK }), 0)
  // Each of them is replaced by its sibling as soon as it dies.
  const twins = `
    spawn() { setsid bash -c "$code" twin $1 & }
    export code='trap "" TERM; while kill -0 $1 2>/dev/null; do sleep 0.002; done; exec setsid bash -c "$code" twin $$'
    (trap "" TERM; spawn $BASHPID; sleep 60) & echo up; wait`
  await using deaf = await new Started(twins).up()
  const killed = await endTree(deaf.roots, { killTimeoutMs: 50, clock: REAL_CLOCK })
  assert.ok(killed >= 2)
  await sleep(50)
  assert.deepEqual(findTree(deaf.roots), [])
})

test('memory is that of all of them together', async () => {
  const eater = `const held = Buffer.alloc(60e6, 1); console.log(held.length); setInterval(() => {}, 1e9)`
  const node = JSON.stringify(process.execPath)
  await using command = await new Started(
    `${node} -e '${eater}' & ${node} -e '${eater}' & wait`,
  ).up()
  const look = (): number => memoryOf(findTree(command.roots)) ?? 0
  // One of them is up; the other takes its part a moment sooner or later.
  for (let looks = 0; looks < 300 && look() < 120e6; looks++) await sleep(50)
  const bytes = look()
  assert.ok(bytes > 120e6 && bytes < 500e6, String(bytes))
})
