import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Alert } from './store/store.ts'
import {
  HOUR_MS,
  evaluateAlerts,
  finding,
  NO_FACTS,
  NOW,
  makeRule,
  type ProblemKind,
} from '../../testing/alert-fixtures.ts'

test('a cause is notified once per repeat interval, and each raised alert is resolved once or still open', () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 1, max: 2 * HOUR_MS }),
    sick: fc.subarray(['a', 'b', 'c']),
    what: fc.constantFrom<ProblemKind>('dead', 'silent', 'overrun'),
    /** Whether a channel takes what is told now. */
    heard: fc.boolean(),
  })
  const repeats = fc.option(fc.constantFrom(HOUR_MS, 4 * HOUR_MS))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), repeats, (steps, repeatMs) => {
      const rules = [makeRule('dead', { repeatMs }), makeRule('silent', { repeatMs })]
      let rows = new Map<string, Alert>()
      const told = new Map<string, number[]>()
      const episodes = new Map<string, string[]>()
      const note = <T>(to: Map<string, T[]>, cause: string, what: T): void =>
        void to.set(cause, [...(to.get(cause) ?? []), what])
      let now = NOW
      for (const { pauseMs, sick, what, heard } of steps) {
        now += pauseMs
        const found = sick.map((run) => ({ ...finding(what, run), run, source: run }))
        const seen = evaluateAlerts({ ...NO_FACTS, found }, rules, [...rows.values()], now)
        rows = seen.rows
        for (const { cause } of seen.raise) note(episodes, cause, 'raise')
        for (const { cause } of seen.resolve) note(episodes, cause, 'resolve')
        for (const { event, alert } of heard ? seen.notifications : []) {
          const row = rows.get(alert.cause)!
          const before = row.deliveries['slack 1'] ?? { sentAt: null, endedAt: null }
          const isEnd = event === 'resolved'
          if (isEnd) assert.ok(before.sentAt !== null && before.sentAt >= row.since)
          else note(told, alert.cause, now)
          const after = isEnd ? { ...before, endedAt: now } : { ...before, sentAt: now }
          rows.set(alert.cause, { ...row, deliveries: { 'slack 1': after } })
        }
        const open = [...rows.values()].filter(({ resolvedAt }) => resolvedAt === null)
        assert.deepEqual(open.map(({ run }) => run).sort(), [...sick].sort())
      }
      for (const times of told.values()) {
        times.forEach((at, n) =>
          assert.ok(n === 0 || at - times[n - 1]! >= (repeatMs ?? 4 * HOUR_MS)),
        )
      }
      for (const episode of episodes.values()) {
        episode.forEach((what, n) => assert.equal(what, n % 2 === 0 ? 'raise' : 'resolve'))
      }
    }),
  )
})
