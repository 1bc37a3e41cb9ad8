import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Alert } from '../model/alert.ts'
import { DEFAULT_RULES, type AlertRule } from '../model/alert-rule.ts'
import { decideAlerts, type AlertDecision, type AlertFacts } from './alert.ts'

const HOUR = 3_600_000
const NOW = 1_000 * HOUR
const RUN = '0199aaaa-0000-7000-8000-00004f2a91bc'
const NOTHING: AlertFacts = { runs: [], parked: [], orphans: [], gaveUp: [] }

type Trouble = 'dead' | 'silent' | 'overrun'
const troubled = (what: Trouble, source = 'shop', because = 'so it is'): AlertFacts => ({
  ...NOTHING,
  runs: [{ run: RUN, source, what, because, command: 'unstuck explain 4f2a91bc' }],
})
const rule = (when: Exclude<AlertRule['when'], 'orphans'>, more: Partial<AlertRule> = {}) =>
  ({ when, sources: [], to: ['slack'], repeatMs: 4 * HOUR, tellsEnd: true, ...more }) as AlertRule
const orphans = (moreThan: number, more: Partial<AlertRule> = {}): AlertRule => ({
  ...rule('dead', more),
  when: 'orphans',
  moreThan,
  withinMs: HOUR,
})

const known = (cause: string, more: Partial<Alert> = {}): Alert => ({
  cause,
  rule: cause.split(' ')[0]!,
  source: 'shop',
  run: RUN,
  because: 'so it is',
  command: '',
  since: NOW - HOUR,
  lastSeenAt: NOW,
  lastSentAt: NOW - HOUR,
  resolvedAt: null,
  ...more,
})

/** The causes that something is done about. */
function causes(decision: AlertDecision): Record<string, string[]> {
  const { raise, tell, resolve } = decision
  const all = {
    raise: raise.map(({ cause, toldAt }) => (toldAt === null ? cause : `${cause} (quietly)`)),
    tell: tell.map(({ cause }) => cause),
    resolve: resolve.map(({ alert, to }) => `${alert.cause} → ${to.join()}`),
  }
  return Object.fromEntries(Object.entries(all).filter(([, some]) => some.length > 0))
}

const MET = { orphans: lostAt(1, 2, 3, 4), parked: [], runs: [], gaveUp: [] }
function lostAt(...minutesAgo: number[]): AlertFacts['orphans'] {
  return minutesAgo.map((minutes) => ({ at: NOW - minutes * 60_000, source: 'shop' }))
}

const CASES: readonly [string, AlertFacts, readonly AlertRule[], Alert[], object][] = [
  ['nothing is wrong', NOTHING, DEFAULT_RULES, [], {}],
  ['a dead run', troubled('dead'), [rule('dead')], [], { raise: [`dead ${RUN}`] }],
  ['no rule asks for it', troubled('dead'), [rule('silent')], [], {}],
  ['a rule for other sources', troubled('dead'), [rule('dead', { sources: ['x'] })], [], {}],
  [
    'a run beyond its duration',
    troubled('overrun'),
    [rule('overrun')],
    [],
    { raise: [`overrun ${RUN}`] },
  ],
  ['… is silent too', troubled('overrun'), [rule('silent')], [], { raise: [`overrun ${RUN}`] }],
  [
    '… and one alert for both rules',
    troubled('overrun'),
    [rule('silent'), rule('overrun')],
    [],
    { raise: [`overrun ${RUN}`] },
  ],
  ['a silent run has not overrun', troubled('silent'), [rule('overrun')], [], {}],
  ['as many orphans as are allowed', { ...MET, orphans: lostAt(1, 2, 3) }, [orphans(3)], [], {}],
  ['one orphan more', MET, [orphans(3)], [], { raise: ['orphans 3/1h'] }],
  ['… one of them an hour ago', { ...MET, orphans: lostAt(1, 2, 3, 60) }, [orphans(3)], [], {}],
  ['… of another source', MET, [orphans(3, { sources: ['x'] })], [], {}],
  [
    'parked targets',
    { ...NOTHING, parked: [{ run: RUN, source: 'shop', targets: 7, error: 'boom' }] },
    [rule('parked')],
    [],
    { raise: [`parked ${RUN}`] },
  ],
  [
    'a supervisor gave up',
    { ...NOTHING, gaveUp: [{ source: 'shop', at: 5, because: 'x' }] },
    [rule('gave-up')],
    [],
    { raise: ['gave-up shop 5'] },
  ],
  ['people know already', troubled('dead'), [rule('dead')], [known(`dead ${RUN}`)], {}],
  [
    'people heard of it 4 h ago',
    troubled('dead'),
    [rule('dead')],
    [known(`dead ${RUN}`, { lastSentAt: NOW - 4 * HOUR })],
    { tell: [`dead ${RUN}`] },
  ],
  [
    '… and are told once only',
    troubled('dead'),
    [rule('dead', { repeatMs: null })],
    [known(`dead ${RUN}`, { lastSentAt: 0 })],
    {},
  ],
  [
    '… by the more insistent of two rules',
    troubled('dead'),
    [rule('dead', { repeatMs: null }), rule('dead', { repeatMs: HOUR })],
    [known(`dead ${RUN}`)],
    { tell: [`dead ${RUN}`] },
  ],
  [
    'whoever raised it is about to tell',
    troubled('dead'),
    [rule('dead')],
    [known(`dead ${RUN}`, { since: NOW - 5_000, lastSentAt: null })],
    {},
  ],
  [
    '… but has not for a minute',
    troubled('dead'),
    [rule('dead', { repeatMs: null })],
    [known(`dead ${RUN}`, { lastSentAt: null })],
    { tell: [`dead ${RUN}`] },
  ],
  [
    '… and there is nobody to tell',
    troubled('dead'),
    [rule('dead', { to: [] })],
    [known(`dead ${RUN}`, { lastSentAt: null })],
    {},
  ],
  [
    'it is over',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`)],
    { resolve: [`dead ${RUN} → slack`] },
  ],
  [
    '… and the rule says not to tell',
    NOTHING,
    [rule('dead', { tellsEnd: false })],
    [known(`dead ${RUN}`)],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    '… and nobody was told of it',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`, { lastSentAt: null })],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    '… and no rule asks any more',
    NOTHING,
    [],
    [known(`dead ${RUN}`)],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    'it comes back soon',
    troubled('dead'),
    [rule('dead')],
    [known(`dead ${RUN}`, { resolvedAt: NOW - 1 })],
    { raise: [`dead ${RUN} (quietly)`] },
  ],
  [
    '… and goes again',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`, { since: NOW - 60_000 })],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    'it comes back after 4 h',
    troubled('dead'),
    [rule('dead')],
    [known(`dead ${RUN}`, { resolvedAt: NOW - 1, lastSentAt: NOW - 4 * HOUR })],
    { raise: [`dead ${RUN}`] },
  ],
]

for (const [what, facts, rules, before, expected] of CASES) {
  test(`${what}: ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(causes(decideAlerts(facts, rules, before, NOW)), expected)
  })
}

test('a finding carries what a message needs: the evidence, the run, and what to type', () => {
  const facts = {
    runs: [],
    parked: [{ run: RUN, source: 'shop', targets: 2, error: 'out of memory' }],
    orphans: [
      ...lostAt(1, 2),
      { at: NOW, source: 'b' },
      { at: NOW, source: 'c' },
      { at: NOW, source: 'a' },
    ],
    gaveUp: [{ source: 'feed', at: 5, because: 'started again 5 times' }],
  }
  const rules = [rule('parked'), rule('gave-up', { to: ['email'] }), orphans(3)]
  const { raise } = decideAlerts(facts, rules, [], NOW)
  assert.deepEqual(
    raise.map(({ run, source, because, command, to }) => [run, source, because, command, to]),
    [
      [
        RUN,
        'shop',
        '2 targets are parked, one of them: out of memory',
        'unstuck unpark --run 4f2a91bc',
        ['slack'],
      ],
      [null, 'feed', 'started again 5 times', 'unstuck logs feed', ['email']],
      [
        null,
        null,
        'runs lost a worker 5 times within 60 min, more than 3 times: a, b, c and 1 more',
        'unstuck history --since 1h',
        ['slack'],
      ],
    ],
  )
})

test('what is known of an open alert is written down at most once a minute', () => {
  const refreshed = (because: string, lastSeenAt: number): number =>
    decideAlerts(
      troubled('dead', 'shop', because),
      [rule('dead')],
      [known(`dead ${RUN}`, { lastSeenAt })],
      NOW,
    ).refresh.length
  assert.equal(refreshed('now this', NOW - 60_000), 1)
  assert.equal(refreshed('now this', NOW - 59_000), 0)
  assert.equal(refreshed('so it is', 0), 0)
})

test('whatever comes and goes, a cause is told once per repeat time, and each raise is resolved once or open', () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 1, max: 2 * HOUR }),
    sick: fc.subarray(['a', 'b', 'c']),
    what: fc.constantFrom<Trouble>('dead', 'silent', 'overrun'),
    /** Whether a channel takes what is told now. */
    heard: fc.boolean(),
  })
  const repeats = fc.option(fc.constantFrom(HOUR, 4 * HOUR))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), repeats, (steps, repeatMs) => {
      const rules = [rule('dead', { repeatMs }), rule('silent', { repeatMs })]
      const rows = new Map<string, Alert>()
      const told = new Map<string, number[]>()
      const episodes = new Map<string, string[]>()
      const note = <T>(to: Map<string, T[]>, cause: string, what: T): void =>
        void to.set(cause, [...(to.get(cause) ?? []), what])
      let now = NOW
      for (const { pauseMs, sick, what, heard } of steps) {
        now += pauseMs
        const runs = sick.map((run) => ({ run, source: run, what, because: '', command: '' }))
        const { raise, tell, resolve } = decideAlerts(
          { ...NOTHING, runs },
          rules,
          [...rows.values()],
          now,
        )
        for (const { to: _, repeatMs: __, toldAt, ...one } of raise) {
          assert.notEqual(rows.get(one.cause)?.resolvedAt, null, 'raised while open')
          const sentAt = toldAt ?? (heard ? now : null)
          rows.set(one.cause, {
            ...one,
            since: now,
            lastSeenAt: now,
            lastSentAt: sentAt,
            resolvedAt: null,
          })
          note(episodes, one.cause, 'raise')
          if (toldAt === null && heard) note(told, one.cause, now)
        }
        for (const { cause } of heard ? tell : []) {
          rows.set(cause, { ...rows.get(cause)!, lastSentAt: now })
          note(told, cause, now)
        }
        for (const { alert } of resolve) {
          assert.equal(rows.get(alert.cause)!.resolvedAt, null, 'resolved twice')
          rows.set(alert.cause, { ...alert, resolvedAt: now })
          note(episodes, alert.cause, 'resolve')
        }
        const open = [...rows.values()].filter(({ resolvedAt }) => resolvedAt === null)
        assert.deepEqual(open.map(({ run }) => run).sort(), [...sick].sort())
      }
      for (const times of told.values()) {
        times.forEach((at, n) => assert.ok(n === 0 || at - times[n - 1]! >= (repeatMs ?? 4 * HOUR)))
      }
      for (const story of episodes.values()) {
        story.forEach((what, n) => assert.equal(what, n % 2 === 0 ? 'raise' : 'resolve'))
      }
    }),
  )
})
