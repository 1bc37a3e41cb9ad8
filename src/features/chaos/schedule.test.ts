import assert from 'node:assert/strict'
import { test } from 'node:test'
import { delayMsOf, makeSchedule, defaultWithinMs, type Fault, type Signal } from './schedule.ts'

function faults(seed: number, count: number, signal: Signal | 'mix' = 'SIGKILL'): Fault[] {
  return makeSchedule(seed, signal).take(count).toArray()
}

test('the same seed makes the same schedule, however many kills are asked for; another seed another one', () => {
  assert.deepEqual(faults(7, 30, 'mix'), faults(7, 30, 'mix'))
  assert.deepEqual(faults(7, 30, 'mix').slice(0, 5), faults(7, 5, 'mix'))
  assert.notDeepEqual(faults(7, 5), faults(8, 5))
})

test('the kind of signal does not move the moments', () => {
  const moments = (signal: Signal | 'mix') =>
    faults(3, 50, signal).map(({ moment, share }) => [moment, share])
  assert.deepEqual(moments('SIGTERM'), moments('mix'))
})

test('a mix has each of its kinds, and any other choice only that one', () => {
  const kinds = (signal: Signal | 'mix') =>
    new Set(faults(1, 100, signal).map((fault) => fault.signal))
  assert.deepEqual(kinds('mix'), new Set(['SIGKILL', 'SIGTERM', 'SIGINT']))
  assert.deepEqual(kinds('SIGHUP'), new Set(['SIGHUP']))
})

test('some faults hit during a start, but never two in a row', () => {
  for (let seed = 0; seed < 50; seed++) {
    const moments = faults(seed, 100).map(({ moment }) => moment)
    assert.ok(moments.includes('start') && moments.includes('work'))
    assert.doesNotMatch(moments.join(' '), /start start/)
  }
})

test('kills fit into the work: with a page for each life and half the time behind it', () => {
  const pace = { startMs: 500, workMs: 10_000, pages: 100 }
  const within = defaultWithinMs(pace, 10)
  assert.equal(within, 1_400)
  assert.ok(10 * (100 + within / 2) <= 10_000)
})

test('where there are fewer pages than kills, a life lasts for about a page', () => {
  assert.equal(defaultWithinMs({ startMs: 0, workMs: 1_000, pages: 5 }, 10), 200)
  assert.equal(defaultWithinMs({ startMs: 0, workMs: 10, pages: 10 }, 10), 20)
})

test('a share is one of the start, or of the time after the first page', () => {
  const fault: Fault = { signal: 'SIGKILL', moment: 'start', share: 0.5, pick: 0 }
  assert.equal(delayMsOf(fault, 300, 1_000), 150)
  assert.equal(delayMsOf({ ...fault, moment: 'work' }, 300, 1_000), 500)
})
