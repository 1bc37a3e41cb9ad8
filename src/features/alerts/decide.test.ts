import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Alert } from './store/store.ts'
import { DEFAULT_RULES, type AlertRule } from './rule.ts'
import {
  changedCauses,
  HOUR_MS,
  knownAlert,
  evaluateAlerts,
  finding,
  NO_FACTS,
  NOW,
  orphanRule,
  makeRule,
  RUN,
  problemFacts,
} from '../../testing/alert-fixtures.ts'
import type { AlertFacts } from './decide.ts'

const MET = { found: [], orphans: lostAt(1, 2, 3, 4) }
function lostAt(...minutesAgo: number[]): AlertFacts['orphans'] {
  return minutesAgo.map((minutes) => ({ at: NOW - minutes * 60_000, source: 'shop' }))
}

const CASES: readonly [string, AlertFacts, readonly AlertRule[], Alert[], object][] = [
  ['nothing is wrong', NO_FACTS, DEFAULT_RULES, [], {}],
  ['a dead run', problemFacts('dead'), [makeRule('dead')], [], { raise: [`dead ${RUN}`] }],
  ['no rule matches it', problemFacts('dead'), [makeRule('silent')], [], {}],
  [
    'a rule for other sources',
    problemFacts('dead'),
    [makeRule('dead', { sources: ['x'] })],
    [],
    {},
  ],
  [
    'a run beyond its duration',
    problemFacts('overrun'),
    [makeRule('overrun')],
    [],
    { raise: [`overrun ${RUN}`] },
  ],
  [
    '… is silent too',
    problemFacts('overrun'),
    [makeRule('silent')],
    [],
    { raise: [`overrun ${RUN}`] },
  ],
  [
    '… and one alert for both rules',
    problemFacts('overrun'),
    [makeRule('silent'), makeRule('overrun')],
    [],
    { raise: [`overrun ${RUN}`] },
  ],
  ['a silent run has not overrun', problemFacts('silent'), [makeRule('overrun')], [], {}],
  ['as many orphans as are allowed', { ...MET, orphans: lostAt(1, 2, 3) }, [orphanRule(3)], [], {}],
  ['one orphan more', MET, [orphanRule(3)], [], { raise: ['orphans 3/1h'] }],
  ['… one of them an hour ago', { ...MET, orphans: lostAt(1, 2, 3, 60) }, [orphanRule(3)], [], {}],
  ['… of another source', MET, [orphanRule(3, { sources: ['x'] })], [], {}],
  [
    'parked targets',
    { ...NO_FACTS, found: [finding('parked', RUN)] },
    [makeRule('parked')],
    [],
    { raise: [`parked ${RUN}`] },
  ],
  [
    'a supervisor gave up',
    { ...NO_FACTS, found: [finding('gave-up', 'shop 5')] },
    [makeRule('gave-up')],
    [],
    { raise: ['gave-up shop 5'] },
  ],
  [
    'it is notified already',
    problemFacts('dead'),
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`)],
    {},
  ],
  [
    'it was notified 4 h ago',
    problemFacts('dead'),
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { since: 0, sentAt: NOW - 4 * HOUR_MS })],
    { notify: [`dead ${RUN}`] },
  ],
  [
    '… and the rule does not repeat',
    problemFacts('dead'),
    [makeRule('dead', { repeatMs: null })],
    [knownAlert(`dead ${RUN}`, { since: 0, sentAt: 1 })],
    {},
  ],
  [
    '… by the rule with the shorter interval',
    problemFacts('dead'),
    [makeRule('dead', { repeatMs: null }), makeRule('dead', { repeatMs: HOUR_MS })],
    [knownAlert(`dead ${RUN}`)],
    { notify: [`dead ${RUN}`] },
  ],
  [
    'the process that raised it is about to notify',
    problemFacts('dead'),
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { since: NOW - 5_000, sentAt: null })],
    {},
  ],
  [
    '… but has not for a minute',
    problemFacts('dead'),
    [makeRule('dead', { repeatMs: null })],
    [knownAlert(`dead ${RUN}`, { sentAt: null })],
    { notify: [`dead ${RUN}`] },
  ],
  [
    '… and the rule has no channel',
    problemFacts('dead'),
    [makeRule('dead', { to: [] })],
    [knownAlert(`dead ${RUN}`, { sentAt: null })],
    {},
  ],
  [
    'it is over',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`)],
    { resolve: [`dead ${RUN} → slack`] },
  ],
  [
    '… and the rule has resolved: false',
    NO_FACTS,
    [makeRule('dead', { notifyResolved: false })],
    [knownAlert(`dead ${RUN}`)],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    '… and it was never notified',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { sentAt: null })],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    '… by the rules of others',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { owner: 'x' })],
    {},
  ],
  [
    '… not checked for two minutes',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { owner: 'x', lastSeenAt: NOW - 120_000 })],
    { resolve: [`dead ${RUN} → slack`] },
  ],
  [
    '… not checked for two minutes, and no rule here matches it',
    NO_FACTS,
    [makeRule('silent')],
    [knownAlert(`dead ${RUN}`, { owner: 'x', lastSeenAt: NOW - 599_000 })],
    {},
  ],
  [
    '… not checked for ten minutes',
    NO_FACTS,
    [makeRule('silent')],
    [knownAlert(`dead ${RUN}`, { owner: 'x', lastSeenAt: NOW - 600_000 })],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    '… and the process that resolved it is about to notify',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { resolvedAt: NOW - 59_000 })],
    {},
  ],
  [
    '… but has not for a minute',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { resolvedAt: NOW - 60_000 })],
    { end: [`dead ${RUN}`] },
  ],
  [
    '… by the rules of another config, and not notified here for ten seconds',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { owner: 'x', resolvedAt: NOW - 10_000 })],
    { end: [`dead ${RUN}`] },
  ],
  [
    '… and its end was notified',
    NO_FACTS,
    [makeRule('dead')],
    [
      knownAlert(`dead ${RUN}`, {
        resolvedAt: NOW - 60_000,
        deliveries: { 'slack 1': { sentAt: NOW - HOUR_MS, endedAt: NOW - 60_000 } },
      }),
    ],
    {},
  ],
  [
    'a silent run dies',
    problemFacts('dead'),
    [makeRule('dead'), makeRule('silent')],
    [knownAlert(`silent ${RUN}`)],
    { raise: [`dead ${RUN}`], resolve: [`silent ${RUN} → `] },
  ],
  [
    '… and then it is over',
    NO_FACTS,
    [makeRule('dead'), makeRule('silent')],
    [
      knownAlert(`silent ${RUN}`, { resolvedAt: NOW - 30 * 60_000 }),
      knownAlert(`dead ${RUN}`, { since: NOW - 30 * 60_000, sentAt: NOW - 60_000 }),
    ],
    { resolve: [`dead ${RUN} → slack`] },
  ],
  [
    '… which the channel of the silent one was not notified of',
    NO_FACTS,
    [makeRule('dead', { to: ['email'] }), makeRule('silent')],
    [
      knownAlert(`silent ${RUN}`, { resolvedAt: NOW - 30 * 60_000 }),
      knownAlert(`dead ${RUN}`, {
        since: NOW - 30 * 60_000,
        deliveries: { 'email 1': { sentAt: NOW - 60_000, endedAt: null } },
      }),
    ],
    { resolve: [`dead ${RUN} → email`], end: [`silent ${RUN}`] },
  ],
  [
    'it is over while an older alert of the run is open',
    { ...NO_FACTS, found: [{ ...finding('parked', RUN), run: RUN }] },
    [makeRule('silent'), makeRule('parked')],
    [knownAlert(`silent ${RUN}`), knownAlert(`parked ${RUN}`, { since: NOW - 2 * HOUR_MS })],
    { resolve: [`silent ${RUN} → slack`] },
  ],
  [
    'one of two channels accepted it',
    problemFacts('dead'),
    [makeRule('dead', { to: ['slack', 'email'], repeatMs: null })],
    [knownAlert(`dead ${RUN}`)],
    { notify: [`dead ${RUN}`] },
  ],
  [
    'it was raised by the rules of another config, and not notified here for ten seconds',
    problemFacts('dead'),
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { owner: 'x', since: NOW - 10_000, sentAt: null })],
    { notify: [`dead ${RUN}`] },
  ],
  [
    'it comes back soon',
    problemFacts('dead'),
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { resolvedAt: NOW - 1 })],
    { raise: [`dead ${RUN} (not sent)`] },
  ],
  [
    '… and goes again',
    NO_FACTS,
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { since: NOW - 60_000 })],
    { resolve: [`dead ${RUN} → `] },
  ],
  [
    'it comes back after 4 h',
    problemFacts('dead'),
    [makeRule('dead')],
    [knownAlert(`dead ${RUN}`, { resolvedAt: NOW - 1, sentAt: NOW - 4 * HOUR_MS })],
    { raise: [`dead ${RUN}`] },
  ],
]

for (const [what, facts, rules, before, expected] of CASES) {
  test(`${what}: ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(changedCauses(evaluateAlerts(facts, rules, before)), expected)
  })
}

test('an alert has the reason, the run and the command of its finding', () => {
  const facts = {
    found: [
      { ...finding('parked', RUN), run: RUN, because: '2 targets parked: out of memory' },
      { ...finding('gave-up', 'feed 5'), source: 'feed', because: 'started again 5 times' },
    ],
    orphans: [
      ...lostAt(1, 2),
      { at: NOW, source: 'b' },
      { at: NOW, source: 'c' },
      { at: NOW, source: 'a' },
    ],
  }
  const rules = [makeRule('parked'), makeRule('gave-up', { to: ['email'] }), orphanRule(3)]
  const { raise } = evaluateAlerts(facts, rules, [])
  assert.deepEqual(
    raise.map(({ run, source, because, command, to }) => [run, source, because, command, to]),
    [
      [RUN, 'shop', '2 targets parked: out of memory', 'unstuck explain 4f2a91bc', ['slack']],
      [null, 'feed', 'started again 5 times', 'unstuck explain 4f2a91bc', ['email']],
      [
        null,
        null,
        'runs lost a worker 5 times within 60 min, more than 3 times: a, b, c and 1 more',
        'unstuck history --since=1h',
        ['slack'],
      ],
    ],
  )
})

test("an open alert is refreshed once a minute; another process's only after it has gone", () => {
  const refreshed = (lastSeenAt: number, owner = 'us'): number =>
    evaluateAlerts(
      problemFacts('dead'),
      [makeRule('dead')],
      [knownAlert(`dead ${RUN}`, { lastSeenAt, owner })],
    ).refresh.length
  assert.deepEqual([refreshed(NOW - 60_000), refreshed(NOW - 59_000)], [1, 0])
  assert.deepEqual([refreshed(NOW - 120_000, 'x'), refreshed(NOW - 119_000, 'x')], [1, 0])
})
