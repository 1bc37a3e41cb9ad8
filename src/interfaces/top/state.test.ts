import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  makeRun,
  makeRuns,
  makeWorker,
  runsSnapshot,
  workersSnapshot,
} from '../../testing/top-fixtures.ts'
import { widthOf } from '../../lib/terminal/width.ts'
import { drawTop } from './frame.ts'
import type { Key } from './terminal.ts'
import { VIEWS, type Snapshot, type View } from './snapshot.ts'
import type { Plan } from './actions.ts'
import { handleKey, initialState, type Effect, type TopState } from './state.ts'

const SIZE = { columns: 80, rows: 24 }
const RUNS = runsSnapshot(makeRuns())
const NAMED =
  'up down left right page-up page-down home end enter escape tab back-tab backspace ctrl-c ctrl-z ctrl-l 好 ü'
const KEYS: readonly Key[] = [
  ...NAMED.split(' '),
  ...Array.from({ length: 95 }, (_, n) => String.fromCodePoint(32 + n)),
]

/** What a row of keys comes to, and what the last of them wished for. */
function pressKeys(
  keys: readonly Key[],
  look: Snapshot | null = RUNS,
  state: TopState = initialState(false),
): { state: TopState; wish: Effect | undefined } {
  let [now, wish]: [TopState, Effect | undefined] = [state, undefined]
  for (const key of keys) {
    const pressed = handleKey(now, key, look, SIZE)
    ;[now, wish] = [pressed.state, pressed.effect]
  }
  return { state: now, wish }
}

const render = (state: TopState, look: Snapshot | null = RUNS): string =>
  drawTop(state, look, SIZE, false).join('\n')
const marked = (state: TopState, look?: Snapshot): string =>
  /^> (\S+)/m.exec(render(state, look))?.[1] ?? 'none'

describe('a list', () => {
  test('arrows, j and k, Home and End move; the ends hold', () => {
    assert.equal(marked(initialState(false)), 'bbdb7d00')
    assert.equal(marked(pressKeys(['down', 'j']).state), 'f9f0fe52')
    assert.equal(marked(pressKeys(['end', 'down']).state), 'fce5966d')
    assert.equal(marked(pressKeys(['end', 'k', 'home', 'up']).state), 'bbdb7d00')
  })

  test('the selected row stays selected when rows move', () => {
    const { state } = pressKeys(['down', 'down'])
    const others = [makeRun('11111111', { health: 'dead' }), ...makeRuns()]
    assert.equal(marked(state, runsSnapshot(others)), 'f9f0fe52')
  })

  test('a page is what fits on the screen', () => {
    const runs = Array.from({ length: 90 }, (_, n) => makeRun(String(10_000_000 + n)))
    const look = runsSnapshot(runs)
    const { state } = pressKeys(['s', 'page-down', 'page-down'], look)
    assert.equal(marked(state, look), '10000036')
    assert.equal(marked(pressKeys(['page-up'], look, state).state, look), '10000018')
  })

  test('s goes through the orders and says which one it is', () => {
    const { state } = pressKeys(['s'])
    assert.match(render(state), /sort: source/)
    assert.equal(marked(state), 'f9f0fe52')
    assert.match(render(pressKeys(['s', 's', 's', 's', 's']).state), /sort: attention/)
  })

  test('/ filters while it is typed; Enter keeps it, Escape drops it', () => {
    const typed = pressKeys(['/', 'n', 'o', ' ', 'L', 'x', 'backspace', 'o']).state
    assert.match(render(typed), /1 of 4 runs[^]*\/no Lo_/)
    const kept = pressKeys(['enter'], RUNS, typed).state
    assert.match(render(kept), /only “no Lo”/)
    assert.match(render(pressKeys(['escape'], RUNS, kept).state), / 4 runs /)
    assert.match(render(pressKeys(['escape'], RUNS, typed).state), / 4 runs /)
  })

  test('a letter in a filter is a letter, whatever it does elsewhere', () => {
    const { state, wish } = pressKeys(['/', 'R', 'q', 'c', '1'])
    assert.equal(state.positions.runs.filter, 'Rqc1')
    assert.equal(wish, undefined)
  })

  test('digits and Tab change the view, and it is looked at once', () => {
    assert.deepEqual(pressKeys(['3']).wish, { type: 'refresh' })
    assert.equal(pressKeys(['3']).state.view, 'recovery')
    assert.equal(pressKeys(['tab', 'tab', 'back-tab']).state.view, 'workers')
    assert.equal(pressKeys(['back-tab']).state.view, 'history')
  })

  test('each view keeps its place', () => {
    assert.equal(marked(pressKeys(['down', '2', '5', '1']).state), '504a7fbe')
  })
})

describe('operations', () => {
  const plan: Plan = {
    sections: [{ heading: null, sentences: [['- resume target c2e09188 of directory']] }],
    question: 'Apply this verdict?',
    apply: async () => ({ message: 'Applied.', undo: [] }),
  }
  const asked: TopState = { ...initialState(false), screen: { kind: 'plan', plan, scroll: 0 } }

  test('R, C and c show a preview first', () => {
    assert.deepEqual(pressKeys(['R']).wish, { type: 'plan', action: { kind: 'recover' } })
    assert.deepEqual(pressKeys(['C']).wish, { type: 'plan', action: { kind: 'clean' } })
    const run = makeRuns()[1]!.id
    assert.deepEqual(pressKeys(['c']).wish, { type: 'plan', action: { kind: 'cancel', run } })
    assert.deepEqual(pressKeys(['enter', 'c']).wish, {
      type: 'plan',
      action: { kind: 'cancel', run },
    })
  })

  test('u reverts the last operation of this session, else of the selected run', () => {
    const runs = [makeRuns()[1]!.id]
    assert.deepEqual(pressKeys(['u']).wish, { type: 'plan', action: { kind: 'revert', runs } })
    const undo = ['01934d2a-0000-7000-8000-000000000009']
    assert.deepEqual(pressKeys(['u'], RUNS, { ...initialState(false), undo }).wish, {
      type: 'plan',
      action: { kind: 'revert', runs: undo },
    })
  })

  test('a run action without a selected run shows a hint', () => {
    const workers = workersSnapshot([makeWorker('c0ffee01')])
    for (const key of ['c', 'u', 'r']) {
      const { state, wish } = pressKeys(['2', key], workers)
      assert.equal(wish, undefined)
      assert.match(state.message?.text ?? '', /^Select/)
    }
  })

  test('only y applies it; n, Escape, q and Enter do not, and the screen reports that', () => {
    assert.match(render(asked), /resume target c2e09188[^]*Apply this verdict\?\ny apply/)
    assert.deepEqual(pressKeys(['y'], RUNS, asked).wish, { type: 'apply', plan })
    for (const key of ['n', 'escape', 'q', 'enter']) {
      const { state, wish } = pressKeys([key], RUNS, asked)
      assert.equal(wish, undefined)
      assert.match(render(state), /Nothing was changed\./)
    }
  })

  test('y does nothing when there is nothing to apply', () => {
    const screen = { kind: 'plan', plan: { ...plan, question: null }, scroll: 0 } as const
    const empty: TopState = { ...asked, screen }
    assert.equal(pressKeys(['y'], RUNS, empty).wish, undefined)
    assert.match(render(empty), /Nothing to apply\./)
  })

  test('while one is under way no other starts', () => {
    const busy = { ...initialState(false), busy: 'Applying …' }
    for (const key of ['R', 'C', 'c', 'u'])
      assert.equal(pressKeys([key], RUNS, busy).wish, undefined)
  })

  test('no single key changes anything, on any screen but the one that asks', () => {
    for (const view of VIEWS) {
      for (const show of ['list', 'help', 'filter', 'detail'] as const) {
        const screen = { kind: show, scroll: 0, row: 'x', before: '' } as TopState['screen']
        for (const key of KEYS) {
          const { wish } = pressKeys([key], RUNS, { ...initialState(false), view, screen })
          assert.notEqual(wish?.type, 'apply', `${key} on ${show} of ${view}`)
        }
      }
    }
  })

  test('a read-only session never starts an operation, whatever is typed', () => {
    const state = initialState(true)
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...KEYS), { maxLength: 30 }), (keys) => {
        let now = state
        for (const key of keys) {
          const pressed = handleKey(now, key, RUNS, SIZE)
          now = pressed.state
          assert.ok(pressed.effect?.type !== 'plan' && pressed.effect?.type !== 'apply')
        }
      }),
      { numRuns: 200 },
    )
    assert.match(render(pressKeys(['R'], RUNS, state).state), /screen is read-only/)
  })
})

test('help and details open and close, and scroll no further than there is text', () => {
  const small = { columns: 80, rows: 12 }
  let { state } = pressKeys(['?'])
  for (let n = 0; n < 50; n++) state = handleKey(state, 'down', RUNS, small).state
  const lines = drawTop(state, RUNS, small, false)
  assert.match(lines.join('\n'), /The database is \/srv\/unstuck\.db\.\n/)
  assert.equal(handleKey(state, 'escape', RUNS, small).state.screen.kind, 'list')
})

test('any input on any terminal size draws a complete frame that fits', () => {
  const looks: (Snapshot | null)[] = [null, RUNS, runsSnapshot([])]
  const views: readonly View[] = VIEWS
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...KEYS), { maxLength: 25 }),
      fc.constantFrom(...looks),
      fc.constantFrom(...views),
      fc.record({
        columns: fc.integer({ min: 1, max: 120 }),
        rows: fc.integer({ min: 1, max: 40 }),
      }),
      (keys, look, view, size) => {
        let state: TopState = { ...initialState(false), view }
        for (const key of keys) state = handleKey(state, key, look, size).state
        const lines = drawTop(state, look, size, false)
        assert.equal(lines.length, size.rows)
        for (const line of lines) assert.ok(widthOf(line) <= size.columns, line)
      },
    ),
    { numRuns: 200 },
  )
})
