import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Alert } from '../../core/model/alert.ts'
import { DEFAULT_RULES, type AlertRule } from '../../core/model/alert-rule.ts'
import {
  causes,
  HOUR,
  known,
  look,
  NOTHING,
  NOW,
  orphans,
  rule,
  RUN,
  troubled,
} from '../../testing/alert-snapshot.ts'
import type { AlertFacts } from './decide.ts'

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
        'unstuck unpark --run=4f2a91bc',
        ['slack'],
      ],
      [null, 'feed', 'started again 5 times', 'unstuck logs feed', ['email']],
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

test('an open alert is said to be so once a minute; that of others only when they are gone', () => {
  const refreshed = (lastSeenAt: number, owner = 'us'): number =>
    look(troubled('dead'), [rule('dead')], [known(`dead ${RUN}`, { lastSeenAt, owner })]).refresh
      .length
  assert.deepEqual([refreshed(NOW - 60_000), refreshed(NOW - 59_000)], [1, 0])
  assert.deepEqual([refreshed(NOW - 120_000, 'x'), refreshed(NOW - 119_000, 'x')], [1, 0])
})
