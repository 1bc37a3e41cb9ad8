import assert from 'node:assert/strict'
import { test } from 'node:test'
import { delayOf, makeSchedule, withinFor, type Blow, type Signal } from './schedule.ts'

function blows(seed: number, count: number, signal: Signal | 'mix' = 'SIGKILL'): Blow[] {
  return makeSchedule(seed, signal).take(count).toArray()
}

test('the same seed makes the same schedule, however many kills are asked for; another seed another one', () => {
  assert.deepEqual(blows(7, 30, 'mix'), blows(7, 30, 'mix'))
  assert.deepEqual(blows(7, 30, 'mix').slice(0, 5), blows(7, 5, 'mix'))
  assert.notDeepEqual(blows(7, 5), blows(8, 5))
})

test('the kind of signal does not move the moments', () => {
  const moments = (signal: Signal | 'mix') =>
    blows(3, 50, signal).map(({ moment, share }) => [moment, share])
  assert.deepEqual(moments('SIGTERM'), moments('mix'))
})

test('a mix has each of its kinds, and any other choice only that one', () => {
  const kinds = (signal: Signal | 'mix') =>
    new Set(blows(1, 100, signal).map((blow) => blow.signal))
  assert.deepEqual(kinds('mix'), new Set(['SIGKILL', 'SIGTERM', 'SIGINT']))
  assert.deepEqual(kinds('SIGHUP'), new Set(['SIGHUP']))
})

test('some blows fall into a start, but never two in a row', () => {
  for (let seed = 0; seed < 50; seed++) {
    const moments = blows(seed, 100).map(({ moment }) => moment)
    assert.ok(moments.includes('start') && moments.includes('work'))
    assert.doesNotMatch(moments.join(' '), /start start/)
  }
})

test('kills fit into the work: with a page for each life and half the time behind it', () => {
  const pace = { startMs: 500, workMs: 10_000, pages: 100 }
  const within = withinFor(pace, 10)
  assert.equal(within, 1_400)
  assert.ok(10 * (100 + within / 2) <= 10_000)
})

test('where there are fewer pages than kills, a life lasts for about a page', () => {
  assert.equal(withinFor({ startMs: 0, workMs: 1_000, pages: 5 }, 10), 200)
  assert.equal(withinFor({ startMs: 0, workMs: 10, pages: 10 }, 10), 20)
})

test('a share is one of the start, or of the time after the first page', () => {
  const blow: Blow = { signal: 'SIGKILL', moment: 'start', share: 0.5, pick: 0 }
  assert.equal(delayOf(blow, 300, 1_000), 150)
  assert.equal(delayOf({ ...blow, moment: 'work' }, 300, 1_000), 500)
})
