import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { toneOfHealth, toneOfSeverity } from '../../src/interfaces/dashboard/model/format.ts'
import type { HealthState, Severity } from '../../src/core/decide/health.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { assertAccepted } from './next-steps.ts'
import { Project, type Json } from './project.ts'
import type { Situation, Situations } from './situation.ts'

/**
 * Puts a database into each situation and compares what every interface reports: status, doctor, check, summary, recover,
 * alerts, explain, show, workers, HTTP, top, the library, and what the dashboard shows. They may differ in detail, never in the
 * answer.
 */
export function testSituations(engine: Engine, situations: Situations): void {
  for (const [name, situation] of Object.entries(situations)) {
    if (situation.only !== undefined && situation.only !== engine.name) continue
    describe(`${engine.name}, ${name}`, () => testSituation(engine, situation))
  }
}

const EXIT_CODE_OF_CHECK = { start: 0, resume: 0, clean: 0, wait: 5 }
const STYLE = { ok: 'good', attention: 'warn', stuck: 'bad' }

const exitCodeOf = (severity: string): number => (severity === 'ok' ? 0 : 3)

function testSituation(engine: Engine, situation: Situation): void {
  const {
    severity,
    health = {},
    check = {},
    verdicts = [],
    alerts = [],
    attention = {},
  } = situation
  const hasProcesses = Object.keys(attention).some((about) => about.includes('earlier copy'))
  const severityOf = (state: HealthState): Severity =>
    situation.isAcknowledged ? 'ok' : SEVERITY_OF[state]
  const states = Object.values(health).flat()
  // What a dead worker of a paused source holds is recovered, but nothing waits for it.
  const isPaused = states.includes('paused')
  let project: Project
  let status: Json

  before(async () => {
    project = await Project.create(engine, situation)
    status = (await project.cli('status')).data
  })
  after(() => project[Symbol.asyncDispose]())

  test('status', async () => {
    const { code, data } = await project.cli('status')
    assert.equal(data.severity, severity, JSON.stringify(data.attention))
    assert.equal(code, exitCodeOf(severity))
    assert.deepEqual(bySource(data.runs), health)
    assert.deepEqual(withoutIds(data.attention), attention)
    assert.equal(data.attention.length > 0, severity !== 'ok')
    if (situation.unsaid) assert.doesNotMatch(JSON.stringify(data), situation.unsaid)
    assert.equal(data.summary.includes('Something is stuck'), severity === 'stuck')
    const count = /(\d+) things? needs? attention/.exec(data.summary)?.[1]
    if (count !== undefined) assert.equal(Number(count), data.attention.length)
    for (const run of data.runs) assert.equal(run.severity, severityOf(run.health))
  })

  test('the commands that status names are accepted', async () => {
    for (const item of status.attention) await assertAccepted(project, item)
  })

  test('doctor', async () => {
    const { data } = await project.cli('doctor')
    const runs = data.checks.find(({ check }: Json) => check === 'runs')
    assert.equal(runs.result, severity === 'ok' ? 'ok' : 'warning')
    assert.equal(withoutAges(runs.found), withoutAges(status.summary))
  })

  test('check', async () => {
    for (const [source, action] of Object.entries(check)) {
      const { code, data } = await project.cli('check', source)
      assert.equal(data.action, action, data.because)
      assert.equal(code, EXIT_CODE_OF_CHECK[action])
      const item = status.attention.find(({ run }: Json) => run === data.run?.id)
      if (action === 'clean' && data.run.origin && item && data.blockedBy === null)
        assert.ok(data.summary.includes(`\`${item.command}\` ends it`), data.summary)
      const isHeard = data.owner !== null && data.owner.lastHeartbeatAt !== null
      const held = data.sections[0].sentences.find((one: string) => /^(Last h|H)eld by/.test(one))
      assert.equal(/last heartbeat/.test(held), isHeard, held)
      if (data.owner?.liveness === 'unknown') assert.doesNotMatch(data.summary, /holds it/)
      if (situation.unsaid) assert.doesNotMatch(JSON.stringify(data), situation.unsaid)
      const other = await project.http(`/api/check/${source}`)
      assert.deepEqual(parts(other, 'action', 'run'), parts(data, 'action', 'run'))
      assert.equal(withoutAges(other.because), withoutAges(data.because))
    }
    assert.deepEqual(
      Object.keys(health).filter((source) => !(source in check)),
      [],
      'each live run',
    )
  })

  test('recover --dry-run', async () => {
    const { code, data } = await project.cli('recover', '--dry-run')
    assert.deepEqual(actions(data), verdicts.toSorted())
    assert.equal(data.active.length, states.length)
    assert.equal(data.severity, severity)
    assert.equal(code, exitCodeOf(severity))
    if (verdicts.length > 0 && !isPaused) assert.notEqual(severity, 'ok')
    const listed = [...verdicts, ...data.processes, ...data.unreadable]
    if (severity !== 'ok' && listed.length === 0)
      assert.match(data.summary, /needs? attention/, 'why it ends with 3')
    // What is printed is the same on both stores.
    if (engine.name !== 'sqlite') return
    const printed = withoutAges(await project.text('recover', '--dry-run'))
    for (const sentence of sentencesOf(data)) assert.ok(printed.includes(sentence), sentence)
  })

  test('summary', async () => {
    const { code, data } = await project.cli('summary')
    const { active, resumable, dead } = data
    assert.equal(data.total, states.length)
    assert.equal(active.length + resumable.length + dead.length, states.length)
    assert.equal(dead.length, states.filter((state) => state === 'dead').length)
    assert.equal(data.severity, severity)
    assert.equal(code, exitCodeOf(severity))
    for (const one of [...active, ...resumable]) {
      const { verdict } = (await project.cli('explain', one.id)).data
      assert.equal(one.action, verdict.action)
      assert.equal(withoutAges(one.because), withoutAges(verdict.because))
    }
    // Unless a copy of its command may still run. Of several runs of a source, `check` is about one.
    const locked = status.sourceLocks.map(({ source }: Json) => source)
    const isOne = ({ source }: Json): boolean =>
      !locked.includes(source) && typeof health[source] === 'string'
    for (const { source } of resumable.filter(isOne)) assert.equal(check[source], 'resume', source)
    for (const { source, facts } of active.filter(isOne))
      if (facts.hasProgress) assert.notEqual(check[source], 'resume', source)
    const paused = states.filter((state) => state === 'paused').length
    assert.equal(data.summary.includes('paused'), paused > 0)
  })

  test('explain and show', async () => {
    const { runs, attention: listed, latest } = status
    for (const { id, health: state } of status.runs) {
      const severityOfRun = severityOf(state)
      const shown = await project.cli('show', id)
      assert.equal(shown.data.run.health, state)
      const itsFailures = status.attention.some(({ run }: Json) => run === id)
      const expected = severityOfRun === 'ok' && itsFailures ? 'attention' : severityOfRun
      assert.equal(shown.data.severity, expected)
      const explained = await project.cli('explain', id)
      assert.equal(explained.data.severity, severityOfRun)
      for (const { data } of [shown, explained])
        if (situation.unsaid) assert.doesNotMatch(JSON.stringify(data), situation.unsaid)
      // The verdict on a table of targets is not that on its best row alone.
      const { because } = listed.find(({ run }: Json) => run === id) ?? { because: null }
      if (/rows in progress/.test(because))
        assert.equal(
          withoutAges(explained.data.verdict.because),
          withoutAges(because).replace(/\.$/, ''),
        )
      if (state === 'dead')
        assert.doesNotMatch(JSON.stringify(shown.data.sections), /continues after/)
    }
    const isLive = (id: string): boolean => runs.some((run: Json) => run.id === id)
    const last = latest === null ? [] : [latest.id]
    const failed = listed.map(({ run }: Json) => run).filter((id: string | null) => id !== null)
    for (const id of new Set<string>([...failed, ...last])) {
      if (isLive(id)) continue
      const expected = failed.includes(id) ? 'attention' : 'ok'
      assert.equal((await project.cli('show', id)).data.severity, expected)
      assert.equal((await project.http(`/api/runs/${id}`)).severity, expected)
    }
    const { data } = await project.cli('recover', '--dry-run')
    for (const { run, target, action } of data.verdicts) {
      const explained = await project.cli('explain', target ?? run)
      assert.equal(explained.data.verdict.action, action)
    }
  })

  // What is accepted is decided before a store is asked, so that one store is enough.
  test(
    'the actions that show offers are accepted',
    { skip: engine.name !== 'sqlite' },
    async () => {
      for (const { id } of status.latest === null ? [] : [...status.runs, status.latest]) {
        const { data } = await project.cli('show', id)
        for (const { command } of data.actions) await assertAccepted(project, { command })
      }
    },
  )

  test('workers', async () => {
    const { items } = (await project.cli('workers')).data
    const counts: Record<string, number> = {}
    for (const { liveness } of items) counts[liveness] = (counts[liveness] ?? 0) + 1
    assert.deepEqual(status.workers, counts)
    const lost = items.filter(
      ({ liveness, targets }: Json) => targets > 0 && ['gone', 'silent'].includes(liveness),
    )
    if (lost.length > 0 && !isPaused) assert.notEqual(severity, 'ok')
  })

  test('alerts', async () => {
    const { code, data } = await project.cli('alerts', 'list')
    assert.deepEqual(data.items.map(({ rule }: Json) => rule).sort(), alerts.toSorted())
    assert.deepEqual([code, data.severity], [severity === 'ok' ? 0 : 3, severity])
    if (alerts.length > 0) assert.notEqual(severity, 'ok')
    for (const alert of data.items as Json[]) {
      // Of parked targets an alert has the error of one too.
      const isSame = (item: Json): boolean =>
        item.run === alert.run &&
        item.source === alert.source &&
        item.command === alert.command &&
        (alert.because.startsWith(item.what) ||
          withoutAges(alert.because) === withoutAges(item.because ?? ''))
      assert.ok(status.attention.some(isSame), JSON.stringify([alert, status.attention]))
    }
  })

  test('HTTP and the dashboard', async () => {
    const overview = await project.http('/api/overview')
    for (const part of ['severity', 'liveRuns', 'workers', 'totals', 'actions'])
      assert.deepEqual(overview[part], status[part], part)
    assert.equal(withoutAges(overview.summary), withoutAges(status.summary))
    assert.deepEqual(withoutIds(overview.attention), attention)
    assert.deepEqual(bySource(overview.runs), health)
    // The icon and the colour of the headline and of each run.
    const well = states.length > 0 ? 'well' : 'idle'
    assert.equal(overview.state, severity === 'ok' ? well : severity)
    assert.equal(toneOfSeverity(overview.severity), STYLE[severity])
    for (const run of overview.runs) {
      const [tone, expected] = [toneOfHealth(run.severity, 'quiet'), severityOf(run.health)]
      assert.equal(tone, expected === 'ok' ? 'quiet' : STYLE[expected])
    }

    const listed = await project.http('/api/runs?status=live')
    assert.deepEqual(bySource(listed.items), health)
    const recovery = await project.http('/api/recovery')
    const { data: dryRun } = await project.cli('recover', '--dry-run')
    assert.deepEqual(sentencesOf(recovery), sentencesOf(dryRun))
    assert.deepEqual(actions(recovery), verdicts.toSorted())
    assert.equal(recovery.severity, severity)
    const { data: counted } = await project.cli('summary')
    for (const path of ['/api/summary', '/api/clean']) {
      const summary = await project.http(path)
      if (path === '/api/summary') assert.equal(summary.severity, severity)
      for (const kind of ['active', 'resumable', 'dead'])
        assert.deepEqual(idsOf(summary[kind]), idsOf(counted[kind]), kind)
    }
    const workers = await project.http('/api/workers')
    const { data: listedWorkers } = await project.cli('workers')
    assert.deepEqual(
      workers.items.map((one: Json) => [one.id, one.liveness, one.targets]),
      listedWorkers.items.map((one: Json) => [one.id, one.liveness, one.targets]),
    )
  })

  test('top', async () => {
    const { summary, style } = await project.top('runs')
    assert.equal(withoutAges(summary), withoutAges(status.summary))
    assert.equal(style, STYLE[severity])
    const printed = await project.text('status')
    for (const { cells } of (await project.top('runs')).list.rows) {
      const [name, , status] = cells as [string, unknown, { text: string }]
      const line = printed.split('\n').find((one) => one.startsWith(`${name} `))
      // An ended run is not in the table.
      if (/orphaned|dead|stalled/.test(status.text))
        assert.match(line ?? '', new RegExp(` ${status.text} `))
    }
    const { list } = await project.top('recovery')
    assert.equal(list.rows.length, verdicts.length)
    const sentences = sentencesOf((await project.cli('recover', '--dry-run')).data)
    for (const { about } of list.rows) {
      const reason = withoutAges(about)
      assert.ok(
        sentences.some((sentence) => sentence.endsWith(`: ${reason}`)),
        reason,
      )
    }
  })

  test('library', async () => {
    await project.library(async (unstuck) => {
      const state = await unstuck.status()
      assert.equal(state.severity, severity)
      assert.equal(withoutAges(state.summary), withoutAges(status.summary))
      assert.equal((await unstuck.summary()).severity, severity)
      assert.deepEqual(actions(await unstuck.recover({ dryRun: true })), verdicts.toSorted())
      for (const [source, action] of Object.entries(check))
        assert.equal((await unstuck.check(source)).action, action)
    })
  })

  // The last one: it changes the situation.
  test('a start does what check says', async () => {
    const ofOneTarget = status.runs.filter(
      ({ kind, origin }: Json) => kind === 'single' && origin === null,
    )
    await project.library(async (unstuck) => {
      for (const { source } of ofOneTarget) {
        // A start also ends processes that an earlier copy left.
        if (hasProcesses) continue
        const begun = unstuck.begin(source)
        if (check[source] === 'wait')
          await assert.rejects(begun, { code: /^E_(ALREADY_RUNNING|SOURCE_PAUSED)$/ })
        else assert.equal((await begun).resumed || check[source] !== 'resume', true)
      }
    })
  })
}

/** The issue: each health state has one severity. */
const SEVERITY_OF: Readonly<Record<HealthState, Severity>> = {
  orphaned: 'stuck',
  dead: 'stuck',
  stalled: 'stuck',
  unknown: 'attention',
  interrupted: 'attention',
  paused: 'ok',
  waiting: 'ok',
  healthy: 'ok',
}

function bySource(runs: readonly Json[]): Json {
  const found = Map.groupBy(runs, ({ source }) => source as string)
  const sorted = (all: readonly Json[]): string[] => all.map(({ health }) => health).sort()
  return Object.fromEntries(
    [...found].map(([source, all]) => [source, all.length === 1 ? all[0]!.health : sorted(all)]),
  )
}

function withoutIds(attention: readonly Json[]): Json {
  const entries = attention.map(({ source, what, command }) => [
    withoutAges(`${source}: ${what}`),
    command.replace(/[\da-f]{8}\b/g, 'ID'),
  ])
  assert.equal(new Set(entries.map(([about]) => about)).size, entries.length, 'listed once')
  return Object.fromEntries(entries)
}

const idsOf = (runs: readonly Json[]): string[] => runs.map(({ id }) => id)

const parts = (data: Json, ...names: string[]): unknown[] =>
  names.map((name) => data[name]?.id ?? data[name])

const actions = ({ verdicts }: { readonly verdicts?: readonly Json[] }): string[] =>
  verdicts!.map(({ action, source }) => `${action} ${source}`).sort()

/** Two reads are not of the same moment. */
const withoutAges = (text: string): string =>
  text.replace(/just now|[\d.]+ (ms|s|min|h|days)( ago)?\b/g, 'N')

const sentencesOf = ({ sections }: Json): string[] =>
  sections.flatMap(({ sentences }: Json) => sentences.map(withoutAges))
