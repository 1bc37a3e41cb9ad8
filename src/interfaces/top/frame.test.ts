import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { HOSTILE_TEXTS } from '../../testing/hostile-text.ts'
import {
  makeRun,
  makeRuns,
  makeSnapshot,
  makeVerdict,
  makeWorker,
  NOW,
  runsSnapshot,
  workersSnapshot,
} from '../../testing/top-fixtures.ts'
import { browseDeadLetters, browseHistory, browseVerdicts } from '../../presenters/browse.ts'
import { widthOf } from '../../lib/terminal/width.ts'
import { drawTop, type Size } from './frame.ts'
import type { Snapshot, View } from './snapshot.ts'
import { withPosition, initialState, type TopState } from './state.ts'

const WIDE: Size = { columns: 80, rows: 24 }
const RUNS = runsSnapshot(makeRuns())

function at(view: View, more: Partial<TopState> = {}): TopState {
  return { ...initialState(false), view, ...more }
}

function draw(state: TopState, look: Snapshot | null, size = WIDE): string {
  return drawTop(state, look, size, false).join('\n').trimEnd()
}

function golden(text: string): string {
  return text.replace(/^\n/, '').replace(/\n$/, '')
}

describe('on 80 columns', () => {
  test('the summary comes first, then what needs attention', () => {
    const drawn = draw(at('runs'), RUNS, { columns: 80, rows: 14 })
    assert.equal(drawn, golden(FIRST))
  })

  test('workers and verdicts are lists like the runs', () => {
    const workers = [
      makeWorker('c0ffee01'),
      makeWorker('c0ffee02', {
        liveness: 'gone',
        pid: 4111,
        targets: 1,
        source: 'directory',
        because: 'process 4111 on vm no longer exists (last heartbeat 12 min ago)',
      }),
    ]
    const size = { columns: 80, rows: 10 }
    assert.equal(draw(at('workers'), workersSnapshot(workers), size), golden(WORKERS))
    const verdicts = [
      makeVerdict('c2e09188'),
      makeVerdict('0', {
        needsAttention: true,
        target: null,
        action: 'abandon',
        from: 'interrupted',
        to: 'abandoned',
        liveness: 'unknown',
        source: 'tender-portal',
      }),
    ]
    const recovery = makeSnapshot('recovery', browseVerdicts(verdicts))
    assert.equal(draw(at('recovery'), recovery, size), golden(VERDICTS))
  })

  test('a row of a user’s own table is named by its key, and its owner has no made-up id', () => {
    const label = 'row a/2 of jobs (vm:78)'
    const workers = [makeWorker('c0ffee01', { label, source: 'import' })]
    const listed = draw(at('workers'), workersSnapshot(workers))
    assert.match(listed, /row a\/2 of jobs \(vm:78\) +import/)
    assert.doesNotMatch(listed, /c0ffee01/)

    const key = '0198c0de-4a7b-7cc3-9d2e-6f1b2a3c4d5e'
    const owned = makeWorker('c0ffee02', { label: `row ${key} of jobs (vm:78)`, source: 'import' })
    for (const own of [[], [makeWorker('c0ffee03', {})]]) {
      const narrow = draw(at('workers'), workersSnapshot([owned, ...own]), {
        columns: 80,
        rows: 24,
      })
      assert.match(narrow, new RegExp(`row ${key}`))
    }
    const entry = {
      id: 1,
      at: NOW,
      run: 'c2e09188',
      target: null,
      key: null,
      source: 'a-source-with-a-long-name',
      action: 'resume',
      actor: 'operator',
      because: 'asked',
      evidence: null,
      before: { table: 'jobs', key, kind: 'runs' },
      after: null,
    }
    const trail = makeSnapshot('history', browseHistory([entry], NOW))
    assert.match(
      draw(at('history'), trail, { columns: 80, rows: 24 }),
      new RegExp(`run jobs:${key} `),
    )

    const row = { table: 'jobs', key: 'a/2' }
    const verdict = makeVerdict('c2e09188', { source: 'import', action: 'fail', to: 'failed', row })
    const drawn = draw(at('recovery'), makeSnapshot('recovery', browseVerdicts([verdict])))
    assert.match(drawn, /fail +run jobs:a\/2 +import/)
    assert.doesNotMatch(drawn, /target \w{8}|→/)
  })

  test('dead letters are listed by error', () => {
    const group = {
      fingerprint: 'abcdef012345',
      error: 'HTTP 403 Forbidden for https://portal.example/detail/17',
      count: 31,
      statuses: { failed: 29, parked: 2 },
      sources: ['directory', 'shop'],
      firstAt: new Date(NOW - 7_200_000).toISOString(),
      lastAt: new Date(NOW - 60_000).toISOString(),
      sample: [],
    }
    const groups = { total: 31, isPartial: false, groups: [group] }
    const drawn = draw(at('letters'), makeSnapshot('letters', browseDeadLetters(groups, NOW)))
    assert.match(drawn, /31 {2}29 failed, 2 parked {2}HTTP 403 .* 60 s ago/)
    assert.match(drawn, /r plan/)
  })

  test('an empty list shows what to do', () => {
    assert.match(draw(at('runs'), runsSnapshot([])), /`unstuck demo`/)
    const filtered = withPosition(at('runs'), { filter: 'nowhere' })
    assert.match(draw(filtered, RUNS), /None of 4 contains “nowhere”\. Esc shows all\./)
  })

  test('the frame is drawn before the first data, and while another view loads', () => {
    assert.match(draw(at('runs'), null), /loading …[^]*\[1 Runs\]/)
    assert.match(draw(at('workers'), RUNS), /\[2 Workers\]/)
  })

  test('when the database is unreachable, the last data stays, with a notice', () => {
    const drawn = draw(at('runs', { error: 'The database does not answer: …' }), RUNS)
    assert.match(drawn, /directory[^]*The database does not answer/)
  })

  test('a list longer than the screen shows the part with the selected row', () => {
    const runs = Array.from({ length: 60 }, (_, n) =>
      makeRun(String(10_000_000 + n), { source: `source-${n}` }),
    )
    const chosen = { row: runs[40]!.id, top: 0, sort: 1, filter: '' }
    const drawn = draw(withPosition(at('runs'), chosen), runsSnapshot(runs))
    assert.match(drawn, /^> 10000040 {2}source-40 /m)
    assert.equal(drawn.split('\n').length, WIDE.rows)
  })
})

test('on 40 columns the columns that matter are left', () => {
  assert.equal(draw(at('runs'), RUNS, { columns: 40, rows: 12 }), golden(NARROW))
})

test('from 100 columns on there is room for the pace and what is left', () => {
  const drawn = draw(at('runs'), RUNS, { columns: 110, rows: 24 })
  assert.match(drawn, /PAGES\/MIN +LEFT/)
  assert.match(drawn, /catalogue .* 12 +8–11 min/)
})

test('at every width each line fits, and the last column is whole', () => {
  const long = 'a-source-with-a-name-that-is-longer-than-its-column-and-many-a-terminal'
  const verdict = makeVerdict('c2e09188', { source: long })
  const workers = ['c0ffee01', 'c0ffee02'].map((id) => makeWorker(id, { source: long }))
  const views: [View, Snapshot, lastCell: RegExp][] = [
    ['runs', runsSnapshot(makeRuns().map((run) => ({ ...run, source: long }))), /(ago|now)$/],
    ['workers', workersSnapshot(workers), /(ago|now)$/],
    ['recovery', makeSnapshot('recovery', browseVerdicts([verdict])), /R$/],
  ]
  for (const columns of [80, 100, 120, 200]) {
    for (const [view, snapshot, lastCell] of views) {
      const lines = draw(at(view), snapshot, { columns, rows: 24 }).split('\n')
      for (const line of lines) assert.ok(widthOf(line) <= columns, `${columns}: ${line}`)
      const rows = lines.filter((line) => line.includes('a-source'))
      assert.ok(rows.length > 0, view)
      for (const row of rows) assert.match(row, lastCell, `${view} at ${columns}`)
    }
  }
})

test('colour only repeats what the words say', () => {
  const coloured = drawTop(at('runs'), RUNS, WIDE, true)
  const plain = drawTop(at('runs'), RUNS, WIDE, false)
  assert.notDeepEqual(coloured, plain)
  assert.deepEqual(
    coloured.map((line) => stripVTControlCharacters(line).trimEnd()),
    plain,
  )
})

test('untrusted text stays on its line and cannot move the cursor', () => {
  const runs = HOSTILE_TEXTS.map((text, n) =>
    makeRun(String(20_000_000 + n), { source: text, because: text, health: 'orphaned' }),
  )
  for (const columns of [200, 80, 40, 20, 1]) {
    for (const { id } of runs) {
      // One row of all is enough for most of them: each is the chosen one once, with its reason below.
      const state = withPosition(at('runs'), { row: id, filter: id })
      const look = runsSnapshot(runs, { summary: HOSTILE_TEXTS.slice(34).join(' ') })
      assertHarmless(drawTop(state, look, { columns, rows: 24 }, false), columns)
    }
  }
})

function assertHarmless(lines: readonly string[], columns: number): void {
  for (const line of lines) {
    assert.doesNotMatch(line, /(?![\u200c\u200d])[\p{Cc}\p{Cf}]/u)
    assert.ok(widthOf(line) <= columns, line)
  }
}

const FIRST = `
unstuck top · 03:12:45 UTC · 4 runs · sort: attention
Something is stuck: 2 runs healthy, 1 run stuck for 12 min, 2 targets parked.
[1 Runs]  2 Workers   3 Recovery   4 Dead letters   5 History
  RUN       SOURCE                 STATUS      DONE            ITEMS    ACTIVITY
> bbdb7d00  directory              orphaned     1/8  █░░░░░░░     90  12 min ago
  504a7fbe  宽字符目标名称         queued    0/120+  ░░░░░░░░      0   3 min ago
  f9f0fe52  catalogue              running   40/120  ███░░░░░    400     2 s ago
  fce5966d  tender-portal-of-the…  cleaned      0/1  ░░░░░░░░      0    26 h ago




process 4111 on vm no longer exists (last heartbeat 12 min ago)
? help  q quit  ↵ open  / filter  s sort  R recover  C clean  c cancel  u revert
`
const WORKERS = `
unstuck top · 03:12:45 UTC · 2 workers · sort: liveness
Something is stuck: 2 runs healthy, 1 run stuck for 12 min, 2 targets parked.
 1 Runs  [2 Workers]  3 Recovery   4 Dead letters   5 History
  WORKER    SOURCE     PROCESS     LIVENESS  TARGETS      UP  HEARTBEAT
> c0ffee02  directory  4111 on vm  gone            1  60 min        now
  c0ffee01  catalogue  4112 on vm  present         3  60 min        now


process 4111 on vm no longer exists (last heartbeat 12 min ago)
? help  q quit  ↵ open  / filter  s sort  R recover  C clean
`
const VERDICTS = `
unstuck top · 03:12:45 UTC · 2 verdicts · sort: outcome
Something is stuck: 2 runs healthy, 1 run stuck for 12 min, 2 targets parked.
 1 Runs   2 Workers  [3 Recovery]  4 Dead letters   5 History
  ACTION   SUBJECT          SOURCE        CHANGE                   LIVENESS  KEY
> resume   target c2e09188  directory     in progress → planned    gone      R
  abandon  run bbdb7d00     tender-port…  interrupted → abandoned  unknown   C


process 4111 on vm no longer exists (last heartbeat 12 min ago); continues afte…
? help  q quit  ↵ open  / filter  s sort  R recover  C clean  c cancel  u revert
`
const NARROW = `
unstuck top · 03:12:45 UTC · 4 runs · s…
Something is stuck: 2 runs healthy, 1 …
[1 Runs]  2   3   4   5
  RUN       SOURCE      STATUS      DONE
> bbdb7d00  directory   orphaned     1/8
  504a7fbe  宽字符目…   queued    0/120+
  f9f0fe52  catalogue   running   40/120
  fce5966d  tender-po…  cleaned      0/1


process 4111 on vm no longer exists (la…
? help  q quit  ↵ open  / filter  s sort
`
