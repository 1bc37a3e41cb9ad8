import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import {
  allOk,
  begin,
  bury,
  claim,
  claimOne,
  hire,
  page,
  save,
  someItems,
  SOURCE,
  startCrawl,
} from '../../testing/cast.ts'
import type { Claimed } from '../../model/claim.ts'
import { newId } from '../../model/id.ts'
import { sqliteEngine as engine } from '../../testing/sqlite-engine.ts'
import type { Store } from '../store.ts'

test('no statement of a run reads all targets, items, workers or entries in the books', async (t) => {
  await using db = await engine.fresh()
  const statements = new Set<string>()
  const prepare = DatabaseSync.prototype.prepare
  t.mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, text: string) {
    statements.add(text)
    return prepare.call(this, text)
  })

  await everyVerb(await db.open())
  t.mock.restoreAll()

  const ours = [...statements].filter((text) =>
    /\b(target|item|tally|run|worker|guard|execution)\b/.test(text),
  )
  assert.ok(ours.length > 40, `only ${ours.length} statements were seen`)
  const planner = new DatabaseSync(db.url.slice('sqlite:'.length))
  for (const text of ours.filter((text) => !/^\s*(CREATE|PRAGMA|EXPLAIN)/i.test(text))) {
    for (const { detail } of planner.prepare(`EXPLAIN QUERY PLAN ${text}`).all()) {
      const scanned = /^SCAN (\w+)(?! VIRTUAL)/.exec(String(detail))?.[1]
      if (!scanned) continue
      const table = tableOf(scanned, text)
      const fine =
        !TABLES.includes(table) ||
        // By their order, from a given place and up to a limit.
        /LIMIT :limit/.test(text) ||
        // Only the living are in this index.
        /USING (COVERING )?INDEX worker_alive/.test(String(detail))
      assert.ok(fine, `${detail} in ${text}`)
    }
  }
  planner.close()
})

const TABLES = ['target', 'item', 'tally', 'run', 'worker', 'audit', 'guard', 'execution']

/** Names in a plan are those of the statement: an alias stands for its table. */
function tableOf(name: string, text: string): string {
  return (
    new RegExp(`(?:FROM|JOIN|UPDATE|INTO|,)\\s+(\\w+)\\s+(?:AS\\s+)?${name}\\b`).exec(text)?.[1] ??
    name
  )
}

async function everyVerb(store: Store): Promise<void> {
  const [worker, dead] = [await hire(store), await hire(store)]
  const run = await startCrawl(store, 20, { planned: false })
  await store.takePlanning(run, worker)
  await store.finishPlanning(run)
  const [a, b, c, d, e] = await claim(store, worker, 5)
  await save(store, a!, { items: someItems(0, 3) })
  allOk(await store.finish([b!]))
  allOk(await store.release([c!]))
  allOk(await store.fail([{ ...d!, error: 'x', retryInMs: 0 }]))
  allOk(await store.park([{ ...e!, reason: 'x' }]))
  await store.fail([{ ...d!, epoch: 9, error: 'x', retryInMs: null }])
  await store.checkpoint([page({ ...a!, epoch: 9 })])
  await store.reportProgress(a!, { done: 1, total: 2 })
  await claimOne(store, dead, { empty: true })
  await bury(store, dead)
  await claimOne(store, worker, { empty: true })
  await store.beat({ worker, claimIds: [a!.claimId], loopLagMs: 0 })
  const begun = await begin(store, worker, { source: 'single' })
  await everyVerbOfCommands(store, begun.claimed!)
  await store.settle()
  await store.settle(run)
  await store.takeTurn(worker, 1_000)
  await store.heldBy(worker, null, 10)
  await store.workers()
  await store.run(run)
  await store.liveRun(SOURCE)
  await store.target(a!.target)
  await store.items(SOURCE, null, 10)
  await store.runsEnding(run.slice(-8))
  await store.countsByGroup(run)
  await store.countsByPage(run)
  for (const status of ['done', undefined] as const) {
    for (const group of ['CA', undefined]) await store.targets(run, { status, group, limit: 5 })
    for (const source of [SOURCE, undefined]) {
      await store.runs({ source, status: status && 'running', limit: 5 })
    }
  }
  for (const newestFirst of [true, false]) {
    await store.audit({ run, newestFirst, limit: 5 })
    await store.audit({ newestFirst, since: 1, limit: 5 })
  }
  await store.retire(dead)
  await everyDeed(store, run)
}

/** But for `guards`, which is asked for all of them. */
async function everyVerbOfCommands(store: Store, claimed: Claimed): Promise<void> {
  const { source, worker, run } = claimed
  const [guard, instead] = [
    { source, worker },
    { worker, beats: 1 },
  ]
  await store.holdSource({ ...guard, killTimeoutMs: 1, cookie: 'c', instead })
  await store.markEnding(source, worker)
  await store.guard(source)
  await store.freeSource({ ...guard, beats: 1, gaveUp: 'x' })
  await store.touch(claimed, 1)
  const id = newId()
  const [where, at] = [{ host: 'h', outputDir: 'o', log: 'l' }, 1]
  await store.startExecution({
    id,
    run,
    worker,
    command: ['c'],
    ...where,
    startedAt: at,
    end: null,
  })
  const how = { exitCode: 0, signal: null, because: 'x', artifacts: 0, peakMemory: null }
  await store.endExecution(id, { at, ...how })
  await store.executions(run, 5)
}

/** What people do. `targetsEnding` reads all targets, for a person who typed a short id. */
async function everyDeed(store: Store, run: string): Promise<void> {
  const deed = { actor: 'a', because: 'b' }
  const move = {
    run,
    to: 'cancelled',
    action: 'cancel',
    evidence: null,
    only: {},
    ...deed,
  } as const
  await store.liveRuns()
  await store.moveRun({ ...move, to: 'interrupted', only: { lastActivityAt: 1, unheld: true } })
  await store.setAside({
    targets: [(await store.targets(run, { limit: 1 })).items[0]!.id],
    ...deed,
  })
  await store.moveRun(move)
  const again = { run, action: 'resume', statuses: ['parked'], reopen: true, ...deed } as const
  await store.replan({ ...again, dryRun: true })
  await store.replan({ ...again, dryRun: false })
  await store.moveRun(move)
  const back = { run, from: 'cancelled', to: 'interrupted', targets: [], undoes: 'cancel' } as const
  await store.revert({ ...back, cancel: null, ...deed })
  const [target] = (await store.targets(run, { limit: 1 })).items
  await store.rewind({ target: target!.id, to: 0, next: null, cursor: null, ...deed })
  await store.moveRun(move)
  await store.retryRun({ run, newRun: newId(), ...deed })
  await store.deleteRun({ run, withItems: false, ...deed })
  await store.auditCounts({ since: 1 })
}
