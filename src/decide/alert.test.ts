import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Alert } from '../model/alert.ts'
import { DEFAULT_RULES, type AlertRule, type ChannelName } from '../model/alert-rule.ts'
import { decideAlerts, findAlerts, type AlertFacts } from './alert.ts'
import { decideTellings, type Teller } from './telling.ts'

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

/** `sentAt`: when those at Slack heard of it. */
const known = (
  cause: string,
  { sentAt = NOW - HOUR, ...more }: Partial<Alert> & { sentAt?: number | null } = {},
): Alert => ({
  cause,
  owner: 'us',
  rule: cause.split(' ')[0]!,
  source: 'shop',
  run: RUN,
  because: 'so it is',
  command: '',
  since: NOW - HOUR,
  lastSeenAt: NOW,
  lastSentAt: sentAt,
  told: sentAt === null ? {} : { 'slack 1': { sentAt, endedAt: null } },
  resolvedAt: null,
  ...more,
})

const teller = (rules: readonly AlertRule[], mine: Iterable<string> = []): Teller => ({
  owner: 'us',
  rules,
  destinations: new Map<ChannelName, string>([
    ['slack', 'slack 1'],
    ['email', 'email 1'],
  ]),
  mine: new Set(mine),
  isLast: false,
})

/** One look: the rows afterwards, and who is told. */
function look(facts: AlertFacts, rules: readonly AlertRule[], before: readonly Alert[], now = NOW) {
  const found = findAlerts(facts, rules, now)
  const open = before.filter(({ resolvedAt }) => resolvedAt === null)
  const { raise, refresh, resolve } = decideAlerts(found, rules, 'us', open, now)
  const rows = new Map(before.map((alert) => [alert.cause, alert]))
  for (const { to: _, repeatMs: __, ...one } of raise) {
    const told = rows.get(one.cause)?.told ?? {}
    const fresh = { owner: 'us', since: now, lastSeenAt: now, lastSentAt: null, resolvedAt: null }
    rows.set(one.cause, { ...one, ...fresh, told })
  }
  for (const alert of resolve) rows.set(alert.cause, { ...alert, resolvedAt: now })
  const all = [...rows.values()]
  const mine = [...raise, ...resolve].map(({ cause }) => cause)
  const tellings = decideTellings(
    found,
    all.filter(({ resolvedAt }) => resolvedAt === null),
    all.filter(({ resolvedAt }) => resolvedAt !== null),
    teller(rules, mine),
    now,
  )
  return { raise, refresh, resolve, rows, tellings }
}

/** The causes that something is done about. */
function causes({ raise, resolve, tellings }: ReturnType<typeof look>): Record<string, string[]> {
  const raised = new Set(raise.map(({ cause }) => cause))
  const heard = new Set(tellings.map(({ alert }) => alert.cause))
  const ends = tellings.filter(({ event }) => event === 'resolved')
  const endsTo = (of: string) => ends.filter(({ alert }) => alert.cause === of).map(({ to }) => to)
  const all = {
    raise: [...raised].map((cause) => (heard.has(cause) ? cause : `${cause} (quietly)`)),
    tell: tellings
      .filter(({ event, alert }) => event !== 'resolved' && !raised.has(alert.cause))
      .map(({ alert }) => alert.cause),
    resolve: resolve.map(({ cause }) => `${cause} → ${endsTo(cause).join()}`),
    end: ends
      .filter(({ alert }) => !resolve.some(({ cause }) => cause === alert.cause))
      .map(({ alert }) => alert.cause),
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
    [known(`dead ${RUN}`, { since: 0, sentAt: NOW - 4 * HOUR })],
    { tell: [`dead ${RUN}`] },
  ],
  [
    '… and are told once only',
    troubled('dead'),
    [rule('dead', { repeatMs: null })],
    [known(`dead ${RUN}`, { since: 0, sentAt: 1 })],
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
    [known(`dead ${RUN}`, { since: NOW - 5_000, sentAt: null })],
    {},
  ],
  [
    '… but has not for a minute',
    troubled('dead'),
    [rule('dead', { repeatMs: null })],
    [known(`dead ${RUN}`, { sentAt: null })],
    { tell: [`dead ${RUN}`] },
  ],
  [
    '… and there is nobody to tell',
    troubled('dead'),
    [rule('dead', { to: [] })],
    [known(`dead ${RUN}`, { sentAt: null })],
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
    [known(`dead ${RUN}`, { sentAt: null })],
    { resolve: [`dead ${RUN} → `] },
  ],
  ['… by the rules of others', NOTHING, [rule('dead')], [known(`dead ${RUN}`, { owner: 'x' })], {}],
  [
    '… who have not looked for two minutes',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`, { owner: 'x', lastSeenAt: NOW - 120_000 })],
    { resolve: [`dead ${RUN} → slack`] },
  ],
  [
    '… who have not looked for two minutes, and no rule here asks for it',
    NOTHING,
    [rule('silent')],
    [known(`dead ${RUN}`, { owner: 'x', lastSeenAt: NOW - 599_000 })],
    {},
  ],
  [
    '… who have not looked for ten',
    NOTHING,
    [rule('silent')],
    [known(`dead ${RUN}`, { owner: 'x', lastSeenAt: NOW - 600_000 })],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    '… and whoever resolved it is about to tell',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`, { resolvedAt: NOW - 59_000 })],
    {},
  ],
  [
    '… but has not for a minute',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`, { resolvedAt: NOW - 60_000 })],
    { end: [`dead ${RUN}`] },
  ],
  [
    '… by the rules of others, and ours were not told for ten seconds',
    NOTHING,
    [rule('dead')],
    [known(`dead ${RUN}`, { owner: 'x', resolvedAt: NOW - 10_000 })],
    { end: [`dead ${RUN}`] },
  ],
  [
    '… and they heard so',
    NOTHING,
    [rule('dead')],
    [
      known(`dead ${RUN}`, {
        resolvedAt: NOW - 60_000,
        told: { 'slack 1': { sentAt: NOW - HOUR, endedAt: NOW - 60_000 } },
      }),
    ],
    {},
  ],
  [
    'a silent run dies',
    troubled('dead'),
    [rule('dead'), rule('silent')],
    [known(`silent ${RUN}`)],
    { raise: [`dead ${RUN}`], resolve: [`silent ${RUN} → `] },
  ],
  [
    '… and then it is over',
    NOTHING,
    [rule('dead'), rule('silent')],
    [
      known(`silent ${RUN}`, { resolvedAt: NOW - 30 * 60_000 }),
      known(`dead ${RUN}`, { since: NOW - 30 * 60_000, sentAt: NOW - 60_000 }),
    ],
    { resolve: [`dead ${RUN} → slack`] },
  ],
  [
    '… of which those who heard of the silent one were not told',
    NOTHING,
    [rule('dead', { to: ['email'] }), rule('silent')],
    [
      known(`silent ${RUN}`, { resolvedAt: NOW - 30 * 60_000 }),
      known(`dead ${RUN}`, {
        since: NOW - 30 * 60_000,
        told: { 'email 1': { sentAt: NOW - 60_000, endedAt: null } },
      }),
    ],
    { resolve: [`dead ${RUN} → email`], end: [`silent ${RUN}`] },
  ],
  [
    'it is over while an older trouble of the run lasts',
    { ...NOTHING, parked: [{ run: RUN, source: 'shop', targets: 1, error: null }] },
    [rule('silent'), rule('parked')],
    [known(`silent ${RUN}`), known(`parked ${RUN}`, { since: NOW - 2 * HOUR })],
    { resolve: [`silent ${RUN} → slack`] },
  ],
  [
    'one of two channels took it',
    troubled('dead'),
    [rule('dead', { to: ['slack', 'email'], repeatMs: null })],
    [known(`dead ${RUN}`)],
    { tell: [`dead ${RUN}`] },
  ],
  [
    'it was raised by the rules of others, and ours were not told for ten seconds',
    troubled('dead'),
    [rule('dead')],
    [known(`dead ${RUN}`, { owner: 'x', since: NOW - 10_000, sentAt: null })],
    { tell: [`dead ${RUN}`] },
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
    [known(`dead ${RUN}`, { resolvedAt: NOW - 1, sentAt: NOW - 4 * HOUR })],
    { raise: [`dead ${RUN}`] },
  ],
]

for (const [what, facts, rules, before, expected] of CASES) {
  test(`${what}: ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(causes(look(facts, rules, before)), expected)
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
  const { raise } = look(facts, rules, [])
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

test('an open alert is said to be so once a minute; that of others only when they are gone', () => {
  const refreshed = (lastSeenAt: number, owner = 'us'): number =>
    look(troubled('dead'), [rule('dead')], [known(`dead ${RUN}`, { lastSeenAt, owner })]).refresh
      .length
  assert.deepEqual([refreshed(NOW - 60_000), refreshed(NOW - 59_000)], [1, 0])
  assert.deepEqual([refreshed(NOW - 120_000, 'x'), refreshed(NOW - 119_000, 'x')], [1, 0])
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
      let rows = new Map<string, Alert>()
      const told = new Map<string, number[]>()
      const episodes = new Map<string, string[]>()
      const note = <T>(to: Map<string, T[]>, cause: string, what: T): void =>
        void to.set(cause, [...(to.get(cause) ?? []), what])
      let now = NOW
      for (const { pauseMs, sick, what, heard } of steps) {
        now += pauseMs
        const runs = sick.map((run) => ({ run, source: run, what, because: '', command: '' }))
        const seen = look({ ...NOTHING, runs }, rules, [...rows.values()], now)
        rows = seen.rows
        for (const { cause } of seen.raise) note(episodes, cause, 'raise')
        for (const { cause } of seen.resolve) note(episodes, cause, 'resolve')
        for (const { event, alert } of heard ? seen.tellings : []) {
          const row = rows.get(alert.cause)!
          const before = row.told['slack 1'] ?? { sentAt: null, endedAt: null }
          const isEnd = event === 'resolved'
          if (isEnd) assert.ok(before.sentAt !== null && before.sentAt >= row.since)
          else note(told, alert.cause, now)
          const after = isEnd ? { ...before, endedAt: now } : { ...before, sentAt: now }
          rows.set(alert.cause, { ...row, told: { 'slack 1': after } })
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
