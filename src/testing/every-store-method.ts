import type { ClaimedTarget } from '../core/model/claim.ts'
import { newId, type RunId } from '../core/model/id.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import type { Store } from '../core/store/store.ts'
import { ADOPTED_STORE } from '../features/adopted/store/store.ts'
import { CRAWLEE_STORE } from '../features/crawlee/store/store.ts'
import {
  itemsOf,
  assertAllOk,
  begin,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  nextCheckpoint,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
} from './fixtures.ts'
import { METRICS_STORE } from '../features/metrics/store/store.ts'
import { ACKNOWLEDGE_STORE } from '../features/acknowledge/store/store.ts'
import { ALERT_STORE } from '../features/alerts/store/store.ts'
import { COMMAND_STORE } from '../features/commands/store/store.ts'
import { ACCESS_STORE } from '../features/access/store/store.ts'
import { ITEM_STORE } from '../features/items/store/store.ts'
import { SOURCE_STORE } from '../features/sources/store/store.ts'
import { INSPECTION_STORE } from '../features/inspection/store/store.ts'

/** Every verb of the store that is part of a run or asks for a part of what there is, at least once. */
export async function callEveryStoreMethod(store: Store): Promise<void> {
  const [worker, dead] = [await registerWorker(store), await registerWorker(store)]
  const run = await enqueueCrawl(store, 20, { planned: false })
  await store.claimPlanning(run, worker)
  await store.setPolicy(run, DEFAULT_POLICY)
  await store.finishPlanning(run)
  const [a, b, c, d, e] = await claim(store, worker, 5)
  await savePage(store, a!, { items: makeItems(0, 3) })
  assertAllOk(await store.finish([b!]))
  assertAllOk(await store.release([c!]))
  assertAllOk(await store.fail([{ ...d!, error: 'x', becomes: { retryInMs: 0 } }]))
  assertAllOk(await store.fail([{ ...e!, error: 'x', becomes: 'parked' }]))
  await store.fail([{ ...d!, epoch: 9, error: 'x', becomes: 'failed' }])
  await store.checkpoint([nextCheckpoint({ ...a!, epoch: 9 })])
  await store.reportProgress(a!, { done: 1, total: 2 })
  await claimOne(store, dead, { isIdle: true })
  await recoverWorker(store, dead)
  await claimOne(store, worker, { isIdle: true })
  await store.heartbeat({ worker, claimIds: [a!.claimId], loopLagMs: 0 })
  const begun = await begin(store, worker, { source: 'single' })
  await callSourceMethods(store)
  await callCommandMethods(store, begun.claimed!)
  await store.settle()
  await store.settle(run)
  await store.acquireLeadership(worker, 1_000)
  await store.claimsOf(worker, null, 10)
  await store.observations()
  await store.holdings()
  await store.worker(worker)
  await store.run(run)
  await store.liveRun(SOURCE)
  await store.target(a!.target)
  await itemsOf(store)
  const items = await store.extend(ITEM_STORE)
  await items.itemsByRun(SOURCE)
  for (const place of ['items', 'datasets'] as const) {
    await items.readItems(place, { source: SOURCE, run, group: 'g', limit: 5 })
    await items.readItems(place, { source: SOURCE, since: 1, limit: 5 })
    await items.latestItems(place, { source: SOURCE, run, limit: 5 })
  }
  await store.idsEnding(run.slice(-8), 'run')
  await store.countsByGroup(run)
  await store.countsByPage(run)
  await store.targets(run, { statuses: ['done', 'failed'], group: 'CA', search: 'x', limit: 5 })
  await store.targets(run, { statuses: ['failed'], acknowledged: false, limit: 5 })
  for (const statuses of [['running', 'failed'], undefined] as const) {
    for (const source of [SOURCE, undefined]) {
      await store.runs({ source, statuses, search: 'x', createdSince: 1, limit: 5 })
    }
  }
  await callReadMethods(store, run)
  await callAdoptedMethods(store)
  await callStorageMethods(store, run, worker)
  for (const newestFirst of [true, false]) {
    await store.audit({ run, newestFirst, limit: 5 })
    await store.audit({ newestFirst, since: 1, limit: 5 })
  }
  await store.retireWorker(dead)
  await callOperatorMethods(store, run)
}

async function callReadMethods(store: Store, run: string): Promise<void> {
  await store.runs({ latestFailed: true, limit: 5 })
  await store.runs({ deadLetters: 'unacknowledged', limit: 5 })
  await callAcknowledgeMethods(store, run)
  await store.deadLetters({ source: SOURCE, acknowledged: false, limit: 5 })
  await store.takeSample()
  await store.takeSample({ unlessWithinMs: 1, onlyChanged: true })
  await store.prune({ minutesBefore: 1 })
  const metrics = await store.extend(METRICS_STORE)
  for (const whose of [{}, { run }, { source: SOURCE }]) {
    for (const everyMinutes of [1, 60]) {
      await metrics.samples({ since: 1, until: 2, everyMinutes, ...whose })
    }
  }
  await metrics.recoveriesPerStep({ since: 1, stepMs: 1 })
  const alert = { cause: 'c', owner: 'o', rule: 'r', source: null, run: null, because: 'b' }
  const alerts = await store.extend(ALERT_STORE)
  await alerts.raiseAlert({ ...alert, command: 'c' })
  await alerts.listAlerts({ open: true })
  for (const event of ['sent', 'ended'] as const) {
    await alerts.markDelivered({ causes: ['c'], destination: 'd', event })
  }
  await alerts.resolveAlert({ ...alert, lastSeenAt: 1 })
  await alerts.listAlerts({ open: false, limit: 5 })
  await alerts.pruneAlerts(1)
  const access = await store.extend(ACCESS_STORE)
  const asked = { actor: 'a', address: null, call: 'POST /', selection: {}, plan: null }
  await access.recordOperation({ ...asked, status: 200, result: 'r' })
  await access.operations({ limit: 5 })
  await access.createSession({ id: 'i', token: 't', tokenMark: 'm', lastsMs: 1_000 })
  await access.session('i')
  await access.deleteSession('i')
}

async function callAdoptedMethods(own: Store): Promise<void> {
  const store = await own.extend(ADOPTED_STORE)
  const [id, row] = [newId(), newId()]
  const ref = { table: 't', key: 'k' }
  const request = { actor: 'a', action: 'abandon', source: SOURCE, run: row, target: null }
  const entry = { ...request, because: 'b', evidence: null, before: {}, after: {} }
  await store.recordIntents([{ id, row, ref, entry, reopens: true }])
  await store.openIntents(0, 5)
  await store.concludeIntents([{ id, isDone: true }])
  await store.rememberedRows([row])
  await store.forgetReopening([row])
  await store.markRows([{ ...ref, id: row, hash: 'a' }], entry)
  await store.hasMarks(ref.table)
}

async function callStorageMethods(store: Store, run: string, worker: string): Promise<void> {
  const storages = await store.extend(CRAWLEE_STORE)
  const { id } = await storages.makeStorage('dataset', 'first')
  const { id: records } = await storages.makeStorage('records', 'first')
  await storages.storage('dataset', id)
  await storages.claimOrder(run, 5)
  await storages.renameStorage(id, 'second')
  for (const desc of [true, false]) {
    await storages.storages('dataset', { offset: 1, limit: 5, desc })
    await storages.entries(id, { offset: 1, limit: 5, desc })
  }
  const entries = [null, 'k', 'k'].map((key) => ({ key, data: '{}' }))
  await storages.append(id, entries)
  await storages.append(id, entries)
  const content = { value: new Uint8Array(1), contentType: 'text/plain' }
  await storages.setRecord(records, 'k', content)
  await storages.record(records, 'k')
  await storages.recordKeys(records, { limit: 5 })
  await storages.recordKeys(records, { prefix: 'k', after: 'a', limit: 5 })
  await storages.setRecord(records, 'k', null)
  await store.plan(run, [{ key: 'first', forefront: true, cursor: {} }])
  await store.targetsByKey(run, ['first', 't0001'])
  const first = nextCheckpoint(await claimOne(store, worker), { done: true })
  const appended = entries.map((entry) => ({ ...entry, dataset: id }))
  assertAllOk(await store.checkpoint([first], storages.appending(run, appended)))
  await storages.dropStorage(id)
}

async function callAcknowledgeMethods(store: Store, run: RunId): Promise<void> {
  const acknowledging = await store.extend(ACKNOWLEDGE_STORE)
  const auditInfo = { actor: 'alice', because: 'seen' }
  for (const targets of [undefined, [newId()]]) {
    for (const dryRun of [true, false])
      await acknowledging.acknowledge({ run, targets, undo: false, dryRun, ...auditInfo })
  }
  await acknowledging.acknowledgedCounts([run])
  await acknowledging.acknowledgedCounts(null)
}

async function callSourceMethods(store: Store): Promise<void> {
  const sources = await store.extend(SOURCE_STORE)
  const request = { source: SOURCE, actor: 'the tests', because: 'x' }
  await sources.setNextStart(SOURCE, 1_000)
  await sources.requestRunNow(request)
  await sources.setLastWork(SOURCE, { command: 'unstuck work a.ts', folder: '/', host: 'h' })
  for (const paused of [true, false]) await sources.setPaused({ ...request, paused })
  await sources.sourceStates([SOURCE])
  await sources.sourceStates()
}

async function callCommandMethods(store: Store, claimed: ClaimedTarget): Promise<void> {
  const { source, worker, run } = claimed
  const [guard, instead] = [
    { source, worker },
    { worker, heartbeats: 1 },
  ]
  await store.lockSource({ ...guard, killTimeoutMs: 1, processTag: 'c', takeOverFrom: instead })
  await store.markUnlocking(source, worker)
  await store.sourceLocks(source)
  await store.unlockSource({ ...guard, heartbeats: 1, gaveUp: 'x' })
  await store.reportActivity(claimed, 1)
  const id = newId()
  const [where, at] = [{ host: 'h', outputDir: 'o', log: 'l' }, 1]
  const executions = await store.extend(COMMAND_STORE)
  await executions.startExecution({
    id,
    run,
    worker,
    command: ['c'],
    ...where,
    startedAt: at,
    end: null,
  })
  const how = { exitCode: 0, signal: null, because: 'x', artifacts: 0, peakMemory: null }
  await executions.endExecution(id, { at, ...how })
  await executions.executions([run], 5)
  await executions.recordEndedProcesses({ run, source, actor: 'a', because: 'b' })
}

/** What people do. */
async function callOperatorMethods(store: Store, run: string): Promise<void> {
  const request = { actor: 'a', because: 'b' }
  const move = {
    run,
    to: 'cancelled',
    action: 'cancel',
    evidence: null,
    expected: {},
    ...request,
  } as const
  await store.liveRuns()
  await store.moveRun({
    ...move,
    to: 'interrupted',
    expected: { lastActivityAt: 1, isUnclaimed: true },
  })
  await store.parkTargets({
    targets: [(await store.targets(run, { limit: 1 })).items[0]!.id],
    ...request,
  })
  await store.moveRun(move)
  const again = { run, action: 'resume', statuses: ['parked'], reopen: true, ...request } as const
  await store.replan({ ...again, dryRun: true })
  await store.replan({ ...again, dryRun: false })
  await store.replan({ ...again, targets: [newId()], dryRun: false })
  await store.moveRun(move)
  const back = { run, from: 'cancelled', to: 'interrupted', targets: [], undoes: 'cancel' } as const
  await store.revert({ ...back, cancel: null, ...request })
  const [target] = (await store.targets(run, { limit: 1 })).items
  await store.rewind({ target: target!.id, to: 0, next: null, cursor: null, ...request })
  await store.moveRun(move)
  await store.retryRun({ run, newRun: newId(), ...request })
  await store.deleteRun({ run, withItems: false, ...request })
  await (await store.extend(METRICS_STORE)).auditCounts({ since: 1 })
}

/** The others: they look at all of it, for people. */
export async function callFullScanMethods(store: Store): Promise<void> {
  await store.now()
  await store.runTotals()
  await store.targetTotals()
  await (await store.extend(METRICS_STORE)).workerStats()
  const workers = { endedBefore: 1, settledBefore: 1, keepNewest: 1 }
  await store.prune({ samplesBefore: 1, statsBefore: 1, workers })
  await store.sourceLocks()
  await store.idsEnding('00000000', 'target')
  await (await store.extend(INSPECTION_STORE)).inspect()
}
