import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { lookAt, someRun, someRuns, someWorker } from '../../testing/top-frame.ts'
import { widthOf } from '../../lib/terminal/width.ts'
import { drawTop } from './frame.ts'
import type { Key } from './keys.ts'
import type { Look } from './snapshot.ts'
import { press, type Wish } from './key-actions.ts'
import { startState, VIEWS, type Plan, type TopState, type View } from './state.ts'

const SIZE = { columns: 80, rows: 24 }
const RUNS = lookAt({ view: 'runs', runs: someRuns() })
const NAMED =
  'up down left right page-up page-down home end enter escape tab back-tab backspace ctrl-c ctrl-z ctrl-l 好 ü'
const KEYS: readonly Key[] = [
  ...NAMED.split(' '),
  ...Array.from({ length: 95 }, (_, n) => String.fromCodePoint(32 + n)),
]

/** What a row of keys comes to, and what the last of them wished for. */
function type(
  keys: readonly Key[],
  look: Look | null = RUNS,
  state: TopState = startState(false),
): { state: TopState; wish: Wish | undefined } {
  let [now, wish]: [TopState, Wish | undefined] = [state, undefined]
  for (const key of keys) {
    const pressed = press(now, key, look, SIZE)
    ;[now, wish] = [pressed.state, pressed.wish]
  }
  return { state: now, wish }
}

const drawn = (state: TopState, look: Look | null = RUNS): string =>
  drawTop(state, look, SIZE, false).join('\n')
const marked = (state: TopState, look?: Look): string =>
  /^> (\S+)/m.exec(drawn(state, look))?.[1] ?? 'none'

describe('a list', () => {
  test('arrows, j and k, Home and End move; the ends hold', () => {
    assert.equal(marked(startState(false)), 'bbdb7d00')
    assert.equal(marked(type(['down', 'j']).state), 'f9f0fe52')
    assert.equal(marked(type(['end', 'down']).state), 'fce5966d')
    assert.equal(marked(type(['end', 'k', 'home', 'up']).state), 'bbdb7d00')
  })

  test('the chosen row stays chosen when the list moves under it', () => {
    const { state } = type(['down', 'down'])
    const others = [someRun('11111111', { health: 'dead' }), ...someRuns()]
    assert.equal(marked(state, lookAt({ view: 'runs', runs: others })), 'f9f0fe52')
  })

  test('a page is what fits on the screen', () => {
    const runs = Array.from({ length: 90 }, (_, n) => someRun(String(10_000_000 + n)))
    const look = lookAt({ view: 'runs', runs })
    const { state } = type(['s', 'page-down', 'page-down'], look)
    assert.equal(marked(state, look), '10000036')
    assert.equal(marked(type(['page-up'], look, state).state, look), '10000018')
  })

  test('s goes through the orders and says which one it is', () => {
    const { state } = type(['s'])
    assert.match(drawn(state), /sort: source/)
    assert.equal(marked(state), 'f9f0fe52')
    assert.match(drawn(type(['s', 's', 's', 's', 's']).state), /sort: attention/)
  })

  test('/ filters while it is typed; Enter keeps it, Escape drops it', () => {
    const typed = type(['/', 'n', 'o', ' ', 'L', 'x', 'backspace', 'o']).state
    assert.match(drawn(typed), /1 of 4 runs[^]*\/no Lo_/)
    const kept = type(['enter'], RUNS, typed).state
    assert.match(drawn(kept), /only “no Lo”/)
    assert.match(drawn(type(['escape'], RUNS, kept).state), / 4 runs /)
    assert.match(drawn(type(['escape'], RUNS, typed).state), / 4 runs /)
  })

  test('a letter in a filter is a letter, whatever it does elsewhere', () => {
    const { state, wish } = type(['/', 'R', 'q', 'c', '1'])
    assert.equal(state.places.runs.filter, 'Rqc1')
    assert.equal(wish, undefined)
  })

  test('digits and Tab change the view, and it is looked at once', () => {
    assert.deepEqual(type(['3']).wish, { want: 'look' })
    assert.equal(type(['3']).state.view, 'recovery')
    assert.equal(type(['tab', 'tab', 'back-tab']).state.view, 'workers')
    assert.equal(type(['back-tab']).state.view, 'history')
  })

  test('each view keeps its place', () => {
    assert.equal(marked(type(['down', '2', '5', '1']).state), '504a7fbe')
  })
})

describe('deeds', () => {
  const plan: Plan = {
    deed: { kind: 'recover' },
    text: (paper) => paper.say('- resume target c2e09188 of directory'),
    question: 'Do this?',
    only: new Set(['x']),
  }
  const asked: TopState = { ...startState(false), screen: { show: 'plan', plan, scroll: 0 } }

  test('R, C and c are looked at first', () => {
    assert.deepEqual(type(['R']).wish, { want: 'plan', deed: { kind: 'recover' } })
    assert.deepEqual(type(['C']).wish, { want: 'plan', deed: { kind: 'clean' } })
    const run = someRuns()[1]!.id
    assert.deepEqual(type(['c']).wish, { want: 'plan', deed: { kind: 'cancel', run } })
    assert.deepEqual(type(['enter', 'c']).wish, { want: 'plan', deed: { kind: 'cancel', run } })
  })

  test('u takes back what was done from here, else what was done to the chosen run', () => {
    const runs = [someRuns()[1]!.id]
    assert.deepEqual(type(['u']).wish, { want: 'plan', deed: { kind: 'revert', runs } })
    const undo = ['01934d2a-0000-7000-8000-000000000009']
    assert.deepEqual(type(['u'], RUNS, { ...startState(false), undo }).wish, {
      want: 'plan',
      deed: { kind: 'revert', runs: undo },
    })
  })

  test('what acts on a run says so where none is chosen', () => {
    const workers = lookAt({ view: 'workers', workers: [someWorker('c0ffee01')] })
    for (const key of ['c', 'u', 'r']) {
      const { state, wish } = type(['2', key], workers)
      assert.equal(wish, undefined)
      assert.match(state.said?.text ?? '', /[Cc]hoose/)
    }
  })

  test('only y does it; n, Escape, q and Enter do not, and say so', () => {
    assert.match(drawn(asked), /resume target c2e09188[^]*Do this\?\ny do it/)
    assert.deepEqual(type(['y'], RUNS, asked).wish, { want: 'act', plan })
    for (const key of ['n', 'escape', 'q', 'enter']) {
      const { state, wish } = type([key], RUNS, asked)
      assert.equal(wish, undefined)
      assert.match(drawn(state), /Nothing was changed\./)
    }
  })

  test('where there is nothing to be done, y does nothing', () => {
    const screen = { show: 'plan', plan: { ...plan, question: null }, scroll: 0 } as const
    const empty: TopState = { ...asked, screen }
    assert.equal(type(['y'], RUNS, empty).wish, undefined)
    assert.match(drawn(empty), /There is nothing to be done\./)
  })

  test('while one is under way no other begins', () => {
    const busy = { ...startState(false), busy: 'At it …' }
    for (const key of ['R', 'C', 'c', 'u']) assert.equal(type([key], RUNS, busy).wish, undefined)
  })

  test('no single key changes anything, on any screen but the one that asks', () => {
    for (const view of VIEWS) {
      for (const show of ['list', 'help', 'filter', 'detail'] as const) {
        const screen = { show, scroll: 0, row: 'x', before: '' } as TopState['screen']
        for (const key of KEYS) {
          const { wish } = type([key], RUNS, { ...startState(false), view, screen })
          assert.notEqual(wish?.want, 'act', `${key} on ${show} of ${view}`)
        }
      }
    }
  })

  test('a read-only look never asks for a deed, whatever is typed', () => {
    const state = startState(true)
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...KEYS), { maxLength: 30 }), (keys) => {
        let now = state
        for (const key of keys) {
          const pressed = press(now, key, RUNS, SIZE)
          now = pressed.state
          assert.ok(pressed.wish?.want !== 'plan' && pressed.wish?.want !== 'act')
        }
      }),
      { numRuns: 200 },
    )
    assert.match(drawn(type(['R'], RUNS, state).state), /read-only look/)
  })
})

test('help and details open and close, and scroll no further than there is text', () => {
  const small = { columns: 80, rows: 12 }
  let { state } = type(['?'])
  for (let n = 0; n < 50; n++) state = press(state, 'down', RUNS, small).state
  const lines = drawTop(state, RUNS, small, false)
  assert.match(lines.join('\n'), /The database is \/srv\/unstuck\.db\.\n/)
  assert.equal(press(state, 'escape', RUNS, small).state.screen.show, 'list')
})

test('whatever is typed on whatever terminal, a whole frame is drawn that fits', () => {
  const looks: (Look | null)[] = [null, RUNS, lookAt({ view: 'runs', runs: [] })]
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
        let state: TopState = { ...startState(false), view }
        for (const key of keys) state = press(state, key, look, size).state
        const lines = drawTop(state, look, size, false)
        assert.equal(lines.length, size.rows)
        for (const line of lines) assert.ok(widthOf(line) <= size.columns, line)
      },
    ),
    { numRuns: 200 },
  )
})
