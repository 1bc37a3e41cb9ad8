import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { ALERT_STORE, type NewAlert } from './store.ts'

const SILENT: NewAlert = {
  cause: 'silent:shop',
  owner: 'ours',
  rule: 'silent',
  source: 'shop',
  run: newId(),
  because: 'no heartbeat for 3 minutes',
  command: 'unstuck recover --dry-run',
}
const GAVE_UP: NewAlert = { ...SILENT, cause: 'gave-up:other', run: null, source: null }

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('an alert is opened once: raised again, only its reason changes', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ALERT_STORE)

      assert.equal(await store.raiseAlert(SILENT), true)
      const [first] = await store.listAlerts({ open: true })
      await db.advanceClock(60_000)
      assert.equal(await store.raiseAlert({ ...SILENT, because: 'still', command: 'x' }), false)

      const [again] = await store.listAlerts({ open: true })
      assert.ok(first && again)
      const { since } = first
      const untold = { lastSentAt: null, deliveries: {}, resolvedAt: null }
      assert.deepEqual(first, { ...SILENT, since, lastSeenAt: since, ...untold })
      assert.ok(Math.abs(since - (await store.now())) < 60_000)
      const moved = { since: since - 60_000, lastSeenAt: again.lastSeenAt }
      assert.deepEqual(again, { ...first, because: 'still', ...moved })
      assert.ok(again.lastSeenAt >= since)
    })

    test('of many calls that raise an alert at once one opens it', async () => {
      await using db = await engine.fresh()
      const stores = await Promise.all(
        Array.from({ length: 5 }, () => openExtended(db, ALERT_STORE)),
      )
      for (let round = 0; round < 3; round++) {
        const raised = await Promise.all(stores.map((store) => store.raiseAlert(SILENT)))
        assert.equal(raised.filter(Boolean).length, 1)
        const [open] = await stores[0]!.listAlerts({ open: true })
        const resolved = await Promise.all(stores.map((store) => store.resolveAlert(open!)))
        assert.equal(resolved.filter(Boolean).length, 1)
      }
    })

    test('a resolved alert that returns is opened anew and keeps its deliveries', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ALERT_STORE)
      await store.raiseAlert(SILENT)
      await store.raiseAlert(GAVE_UP)
      const causes = [SILENT.cause, GAVE_UP.cause, SILENT.cause]
      await store.markDelivered({ causes, destination: 'slack 1', event: 'sent' })
      await store.markDelivered({ causes: [SILENT.cause], destination: 'email 1', event: 'sent' })
      const open = (await store.listAlerts({ open: true })).find(
        ({ cause }) => cause === SILENT.cause,
      )!
      assert.deepEqual(Object.keys(open.deliveries).sort(), ['email 1', 'slack 1'])
      assert.equal(
        open.lastSentAt,
        Math.max(...Object.values(open.deliveries).map((one) => one.sentAt!)),
      )
      assert.ok(open.lastSentAt >= open.since)
      assert.equal(await store.resolveAlert(open), true)
      assert.equal(await store.resolveAlert(open), false)
      await store.markDelivered({ causes: [SILENT.cause], destination: 'slack 1', event: 'ended' })
      const [resolved] = await store.listAlerts({ open: false, limit: 10 })
      assert.ok(resolved!.resolvedAt! >= resolved!.since)
      const { sentAt, endedAt } = resolved!.deliveries['slack 1']!
      assert.equal(sentAt, open.deliveries['slack 1']!.sentAt)
      assert.ok(endedAt! >= resolved!.resolvedAt!)
      assert.equal(resolved!.deliveries['email 1']!.endedAt, null)
      await db.advanceClock(60_000)

      assert.equal(await store.raiseAlert({ ...SILENT, because: 'again', command: 'y' }), true)

      const back = (await store.listAlerts({ open: true })).find(
        ({ cause }) => cause === SILENT.cause,
      )!
      assert.partialDeepStrictEqual(back, { because: 'again', command: 'y', resolvedAt: null })
      assert.ok(back.since > resolved!.since - 60_000 + 1_000)
      assert.equal(back.deliveries['slack 1']!.sentAt, sentAt! - 60_000)
      assert.deepEqual(await store.listAlerts({ open: false, limit: 10 }), [])
    })

    test('an alert gets a new owner when its own has not seen it for two minutes, and is resolved as it was read', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ALERT_STORE)
      await store.raiseAlert(SILENT)
      const before = (await store.listAlerts({ open: true }))[0]!
      await db.advanceClock(119_000)
      await store.raiseAlert({ ...SILENT, owner: 'theirs' })
      assert.equal((await store.listAlerts({ open: true }))[0]!.owner, 'ours')
      assert.equal(await store.resolveAlert(before), false, 'it was seen meanwhile')
      await db.advanceClock(120_000)
      const stale = (await store.listAlerts({ open: true }))[0]!
      await store.raiseAlert({ ...SILENT, owner: 'theirs' })
      const taken = (await store.listAlerts({ open: true }))[0]!
      assert.equal(taken.owner, 'theirs')
      assert.equal(await store.resolveAlert({ ...taken, owner: 'ours' }), false)
      assert.equal(await store.resolveAlert(stale), false)
      assert.equal(await store.resolveAlert(taken), true)
    })

    test('open alerts come oldest first, resolved ones the last resolved first', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ALERT_STORE)
      for (const alert of [SILENT, GAVE_UP, { ...SILENT, cause: 'third' }]) {
        await store.raiseAlert(alert)
        await db.advanceClock(1_000)
      }
      const causes = async () => (await store.listAlerts({ open: true })).map(({ cause }) => cause)
      assert.deepEqual(await causes(), [SILENT.cause, GAVE_UP.cause, 'third'])

      for (const cause of [GAVE_UP.cause, SILENT.cause]) {
        await store.resolveAlert(
          (await store.listAlerts({ open: true })).find((one) => one.cause === cause)!,
        )
        await db.advanceClock(1_000)
      }

      assert.deepEqual(await causes(), ['third'])
      const recent = await store.listAlerts({ open: false, limit: 10 })
      assert.deepEqual(
        recent.map(({ cause }) => cause),
        [SILENT.cause, GAVE_UP.cause],
      )
      assert.equal((await store.listAlerts({ open: false, limit: 1 })).length, 1)
      assert.equal(await store.resolveAlert({ ...recent[0]!, cause: 'never raised' }), false)
    })

    test('every text of an alert can be stored', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ALERT_STORE)
      await store.raiseAlert({ ...SILENT, because: 'a\0b \ud83d <script>' })
      assert.equal((await store.listAlerts({ open: true })).length, 1)
    })

    test('resolved alerts are removed with their deliveries; open ones stay', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ALERT_STORE)
      const alert = { owner: 'o', rule: 'r', source: null, run: null, because: 'b', command: 'c' }
      for (const cause of ['over', 'open']) {
        await store.raiseAlert({ ...alert, cause })
        await store.markDelivered({ causes: [cause], destination: 'd', event: 'sent' })
      }
      const now = await store.now()
      await store.resolveAlert({ cause: 'over', owner: 'o', lastSeenAt: now + 60_000 })

      assert.equal(await store.pruneAlerts(now - 60_000), 0)
      assert.equal(await store.pruneAlerts(now + 60_000), 1)

      assert.deepEqual(await store.listAlerts({ open: false, limit: 10 }), [])
      const [open] = await store.listAlerts({ open: true })
      assert.ok(open?.deliveries['d'], 'who was notified of the open one')
      await store.raiseAlert({ ...alert, cause: 'over' })
      const again = (await store.listAlerts({ open: true })).find(({ cause }) => cause === 'over')
      assert.deepEqual(again?.deliveries, {})
    })
  })
}
