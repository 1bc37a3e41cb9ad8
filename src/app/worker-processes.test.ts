import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decideRestart } from './worker-processes.ts'

test('a process that has done its work, or was stopped, is not restarted', () => {
  for (const code of [0, 3, 75]) {
    assert.deepEqual(decideRestart({ code, uptimeMs: 10, quickExits: 9, hasStarted: true }), {
      action: 'leave',
    })
  }
})

test('a process that would end the same way again is not restarted', () => {
  for (const code of [2, 9]) {
    assert.deepEqual(decideRestart({ code, uptimeMs: 10, quickExits: 0, hasStarted: true }), {
      action: 'give-up',
      code,
    })
  }
})

test('a worker process that lost its database is not restarted; one that could not reach it at its start is', () => {
  const end = { code: 7, uptimeMs: 10, quickExits: 0 }
  assert.deepEqual(decideRestart({ ...end, hasStarted: true }), { action: 'give-up', code: 7 })
  assert.equal(decideRestart({ ...end, hasStarted: false }).action, 'restart')
})

test('a process that was killed or crashed is restarted at once', () => {
  for (const code of [null, 1, 137]) {
    assert.deepEqual(decideRestart({ code, uptimeMs: 60_000, quickExits: 7, hasStarted: false }), {
      action: 'restart',
      afterMs: 0,
      quickExits: 0,
    })
  }
})

test('a process that keeps dying right after its start is restarted with growing pauses', () => {
  const pauses: number[] = []
  let quickEnds = 0
  for (let n = 0; n < 12; n++) {
    const decision = decideRestart({
      code: 1,
      uptimeMs: 100,
      quickExits: quickEnds,
      hasStarted: true,
    })
    assert.ok(decision.action === 'restart')
    pauses.push(decision.afterMs)
    quickEnds = decision.quickExits
  }
  assert.deepEqual(pauses.slice(0, 6), [0, 0, 0, 500, 1_000, 2_000])
  assert.equal(pauses.at(-1), 30_000)
  assert.deepEqual(
    pauses,
    pauses.toSorted((a, b) => a - b),
  )
})

test('the pause before a restart is bounded', () => {
  fc.assert(
    fc.property(
      fc.option(fc.integer()),
      fc.nat(1_000_000),
      fc.nat(5_000),
      (code, uptimeMs, quickEnds) => {
        const decision = decideRestart({ code, uptimeMs, quickExits: quickEnds, hasStarted: true })
        if (decision.action !== 'restart') return
        assert.ok(decision.afterMs >= 0 && decision.afterMs <= 30_000)
      },
    ),
  )
})
