import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { Inspection } from '../inspection/store/store.ts'
import { compare, type Outcome } from './compare.ts'
import { keysIn } from './outcome.ts'
import { replayCommand, trialOptions } from './trial.ts'
import { printReport } from './report-text.ts'
import { makeReport, type Report, type ReportInput } from './report.ts'
import type { InjectionResult } from './runner.ts'

const reference: Outcome = {
  runs: [{ id: 'r', source: 'shop', status: 'succeeded', retryOf: null, pages: 20, refused: 0 }],
  targets: [{ source: 'shop', key: 'shop', status: 'done', page: 20 }],
  items: Array.from({ length: 60 }, (_, n) => ({ source: 'shop', key: `k${n}`, data: n })),
  output: null,
}
const inspection: Inspection = {
  durability: {},
  counters: { checked: 1, unchecked: 0, mismatches: [] },
  duplicateLiveRuns: [],
  invalidClaims: [],
  withoutEndTime: [],
  leftoverLocks: [],
  blockedWal: null,
}
const kill = { signal: 'SIGKILL', moment: 'work', afterMs: 900, pages: 4, processes: 1 } as const
const EXPERIMENT: InjectionResult = {
  kills: [kill, kill, { ...kill, signal: 'SIGTERM' }],
  starts: 4,
  withinMs: 300,
  reclaimedMs: [900, 300],
  recoveries: { resume: 2 },
  tookMs: 6_000,
  forced: 0,
  isDoneEarly: false,
  problem: null,
}

function report(change: Partial<Outcome> = {}, seen: Partial<ReportInput> = {}): Report {
  const result = { ...reference, ...change }
  return makeReport({
    reference,
    referenceMs: 2_000,
    result,
    differences: compare(reference, result, { ignoreData: false }),
    injection: EXPERIMENT,
    killsAsked: 3,
    inspection,
    leftBehind: 0,
    ...seen,
  })
}

const problems = (of: Report): string[] => of.problems.map(({ what }) => what)

test('a trial in which all is as in the reference is ok, with its figures', () => {
  const found = report({ runs: [{ ...reference.runs[0]!, refused: 2 }] })
  assert.deepEqual(found.problems, [])
  assert.equal(found.ok, true)
  assert.deepEqual(found.killsBySignal, { SIGKILL: 2, SIGTERM: 1 })
  assert.deepEqual([found.lost, found.doubled, found.lateWritesRefused], [0, 0, 2])
  assert.deepEqual(
    [found.recoveries, found.medianRecoveryMs, found.slowestRecoveryMs],
    [2, 600, 900],
  )
  assert.deepEqual([found.outputLost, found.outputDoubled], [null, null])
  assert.deepEqual(found.result, { ms: 6_000, runs: 1, targets: 1, pages: 20, items: 60 })
})

test('lost items are counted, and the first ten are named', () => {
  const found = report({ items: reference.items.slice(12) })
  const [problem] = found.problems
  assert.deepEqual([found.ok, found.itemsLost, found.lost], [false, 12, 12])
  assert.deepEqual(
    [problem!.what, problem!.count, problem!.examples.length],
    ['items-lost', 12, 10],
  )
  assert.equal(problem!.examples[0], 'shop k0')
})

test('a trial without a kill proves nothing, and is not ok', () => {
  const injection = { ...EXPERIMENT, kills: [], isDoneEarly: true }
  assert.deepEqual(problems(report({}, { injection })), ['no-kills'])
})

test('fewer kills than requested are reported, and are not a failure', () => {
  const found = report({}, { injection: { ...EXPERIMENT, isDoneEarly: true }, killsAsked: 10 })
  assert.equal(found.ok, true)
  assert.match(found.warnings.join(), /^The command was done before all 10 kills were injected/)
})

test('if the command was given up, only that is reported, not the missing results', () => {
  const problem = { what: 'never-ended', message: '', count: 1, examples: [], hint: null }
  const injection = { ...EXPERIMENT, problem }
  assert.deepEqual(problems(report({ items: [] }, { injection })), ['never-ended'])
})

test('a broken guarantee or a leftover process is not ok', () => {
  const book = { run: 'r', source: 'shop', status: 'done', recorded: 2, counted: 1 } as const
  const books = { checked: 1, unchecked: 0, mismatches: [book] }
  assert.deepEqual(problems(report({}, { inspection: { ...inspection, counters: books } })), [
    'counters',
  ])
  assert.deepEqual(problems(report({}, { leftBehind: 2 })), ['left-behind'])
})

test('the report fits into 80 columns, lists what is wrong with examples, and how to reproduce it', () => {
  const replay = 'npx unstuck chaos --seed 999999 --within 12345ms -- node crawl.ts'
  const print = (of: Report): string => {
    const paper = new TextWriter(80, false)
    printReport(paper, of, { seed: 999_999, replay, next: [], leftBehind: null })
    return paper.toString()
  }
  const good = print(report())
  assert.match(good, /^3 kills: nothing lost, nothing doubled\.$/m)
  assert.doesNotMatch(good, /…/)
  const bad = print(report({ items: reference.items.slice(12) }))
  assert.match(bad, /^- 12 items of the reference are missing\. A page and [^]*\n {4}shop k0\n/m)
  assert.match(bad, /^ {4}… and 2 more$/m)
  assert.ok(bad.includes(replay))
  for (const line of `${good}${bad}`.split('\n')) {
    assert.ok(line.length <= 80 || line.includes(replay), line)
  }
})

test('a line of the output is its key, url or id where it is JSON, else itself, also when it was cut off', () => {
  const lines = [
    'plain',
    '{"key":"k","url":"u"}',
    '{"url":"u"}',
    '{"id":7}',
    '{"x":1}',
    '',
    '{"url":"u',
    ' ',
  ]
  assert.deepEqual(keysIn(lines.join('\n')), ['plain', 'k', 'u', '7', '{"x":1}', '{"url":"u'])
  assert.deepEqual(keysIn('a\r\nb\r\n'), ['a', 'b'])
})

test('the command that plays it again has the seed and the time, word for word, and no password', () => {
  const trial = {
    command: ['node', 'my crawl.ts', "it's"],
    seed: 7,
    kills: 5,
    duration: undefined,
    signal: 'mix',
    whom: 'all',
    within: undefined,
    maxDuration: trialOptions.maxDuration.defaultValue,
    output: undefined,
    ignoreData: true,
    keep: false,
    server: 'postgres://me:secret@host/db',
  } as const
  assert.equal(
    replayCommand(trial, 640),
    "npx unstuck chaos --kills=5 --signal=mix --seed=7 --within=640ms '--db=postgres://***@host/db' --ignore-data -- node 'my crawl.ts' 'it'\\''s'",
  )
})
