import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../model/id.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { NewAlert, NewOperation } from '../store.ts'

const SILENT: NewAlert = {
  cause: 'silent:shop',
  owner: 'ours',
  rule: 'silent',
  source: 'shop',
  run: newId(),
  because: 'no sign of life for 3 minutes',
  command: 'unstuck recover --dry-run',
}
const GAVE_UP: NewAlert = { ...SILENT, cause: 'gave-up:other', run: null, source: null }

export function alertTests(engine: Engine): void {
  test('an alert is new once: raised again, only its reason changes', async () => {
    await using db = await engine.fresh()
    const store = await db.open()

    assert.equal(await store.raiseAlert(SILENT), true)
    const [first] = await store.openAlerts()
    await db.advanceClock(60_000)
    assert.equal(await store.raiseAlert({ ...SILENT, because: 'still', command: 'x' }), false)

    const [again] = await store.openAlerts()
    assert.ok(first && again)
    const { since } = first
    const untold = { lastSentAt: null, deliveries: {}, resolvedAt: null }
    assert.deepEqual(first, { ...SILENT, since, lastSeenAt: since, ...untold })
    assert.ok(Math.abs(since - (await store.now())) < 60_000)
    const moved = { since: since - 60_000, lastSeenAt: again.lastSeenAt }
    assert.deepEqual(again, { ...first, because: 'still', ...moved })
    assert.ok(again.lastSeenAt >= since)
  })

  test('of many concurrent calls that raise an alert one opens it', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 5 }, () => db.open()))
    for (let round = 0; round < 3; round++) {
      const raised = await Promise.all(stores.map((store) => store.raiseAlert(SILENT)))
      assert.equal(raised.filter(Boolean).length, 1)
      const [open] = await stores[0]!.openAlerts()
      const resolved = await Promise.all(stores.map((store) => store.resolveAlert(open!)))
      assert.equal(resolved.filter(Boolean).length, 1)
    }
  })

  test('a resolved alert that is raised again opens anew, and its notifications are kept', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await store.raiseAlert(SILENT)
    await store.raiseAlert(GAVE_UP)
    const causes = [SILENT.cause, GAVE_UP.cause, SILENT.cause]
    await store.markDelivered({ causes, destination: 'slack 1', event: 'sent' })
    await store.markDelivered({ causes: [SILENT.cause], destination: 'email 1', event: 'sent' })
    const open = (await store.openAlerts()).find(({ cause }) => cause === SILENT.cause)!
    assert.deepEqual(Object.keys(open.deliveries).sort(), ['email 1', 'slack 1'])
    assert.equal(
      open.lastSentAt,
      Math.max(...Object.values(open.deliveries).map((one) => one.sentAt!)),
    )
    assert.ok(open.lastSentAt >= open.since)
    assert.equal(await store.resolveAlert(open), true)
    assert.equal(await store.resolveAlert(open), false)
    await store.markDelivered({ causes: [SILENT.cause], destination: 'slack 1', event: 'ended' })
    const [resolved] = await store.recentAlerts(10)
    assert.ok(resolved!.resolvedAt! >= resolved!.since)
    const { sentAt, endedAt } = resolved!.deliveries['slack 1']!
    assert.equal(sentAt, open.deliveries['slack 1']!.sentAt)
    assert.ok(endedAt! >= resolved!.resolvedAt!)
    assert.equal(resolved!.deliveries['email 1']!.endedAt, null)
    await db.advanceClock(60_000)

    assert.equal(await store.raiseAlert({ ...SILENT, because: 'again', command: 'y' }), true)

    const back = (await store.openAlerts()).find(({ cause }) => cause === SILENT.cause)!
    assert.partialDeepStrictEqual(back, { because: 'again', command: 'y', resolvedAt: null })
    assert.ok(back.since > resolved!.since - 60_000 + 1_000)
    assert.equal(back.deliveries['slack 1']!.sentAt, sentAt! - 60_000)
    assert.deepEqual(await store.recentAlerts(10), [])
  })

  test('an alert changes hands when its owner has not seen it for two minutes, and is resolved as it was read', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await store.raiseAlert(SILENT)
    const before = (await store.openAlerts())[0]!
    await db.advanceClock(119_000)
    await store.raiseAlert({ ...SILENT, owner: 'theirs' })
    assert.equal((await store.openAlerts())[0]!.owner, 'ours')
    assert.equal(await store.resolveAlert(before), false, 'it was seen meanwhile')
    await db.advanceClock(120_000)
    const stale = (await store.openAlerts())[0]!
    await store.raiseAlert({ ...SILENT, owner: 'theirs' })
    const taken = (await store.openAlerts())[0]!
    assert.equal(taken.owner, 'theirs')
    assert.equal(await store.resolveAlert({ ...taken, owner: 'ours' }), false)
    assert.equal(await store.resolveAlert(stale), false)
    assert.equal(await store.resolveAlert(taken), true)
  })

  test('open alerts come oldest first, resolved ones the last resolved first', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    for (const alert of [SILENT, GAVE_UP, { ...SILENT, cause: 'third' }]) {
      await store.raiseAlert(alert)
      await db.advanceClock(1_000)
    }
    const causes = async () => (await store.openAlerts()).map(({ cause }) => cause)
    assert.deepEqual(await causes(), [SILENT.cause, GAVE_UP.cause, 'third'])

    for (const cause of [GAVE_UP.cause, SILENT.cause]) {
      await store.resolveAlert((await store.openAlerts()).find((one) => one.cause === cause)!)
      await db.advanceClock(1_000)
    }

    assert.deepEqual(await causes(), ['third'])
    const recent = await store.recentAlerts(10)
    assert.deepEqual(
      recent.map(({ cause }) => cause),
      [SILENT.cause, GAVE_UP.cause],
    )
    assert.equal((await store.recentAlerts(1)).length, 1)
    assert.equal(await store.resolveAlert({ ...recent[0]!, cause: 'nobody raised it' }), false)
  })

  test('operator requests over HTTP are kept in order, and read page by page', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const before = await store.now()
    for (let n = 0; n < 5; n++) await store.recordOperation(operation(n))

    const first = await store.operations({ limit: 3 })
    const second = await store.operations({ limit: 3, after: first.next! })

    const all = [...first.items, ...second.items]
    assert.deepEqual(
      all.map(({ id: _id, at: _at, ...kept }) => kept),
      [4, 3, 2, 1, 0].map(operation),
    )
    assert.deepEqual(
      all.map(({ id }) => id),
      all.map(({ id }) => id).sort((a, b) => b - a),
    )
    for (const { at } of all) assert.ok(at >= before && at <= before + 60_000)
    assert.equal(second.next, null)
    assert.equal((await store.operations({ limit: 5 })).next, null)
  })

  test('any text can be stored as an operation', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const odd = 'a\0b \ud83d <script>'

    const texts = { actor: odd, address: odd, call: odd, plan: odd, result: odd }
    await store.recordOperation({ ...operation(0), ...texts, selection: { odd, [odd]: [odd] } })
    await store.recordOperation({ ...operation(1), selection: undefined })
    await store.raiseAlert({ ...SILENT, because: odd })

    const { items } = await store.operations({ limit: 2 })
    assert.equal(items[0]!.selection, null)
    assert.match(items[1]!.result, /^a.?b .*<script>$/su)
    assert.equal((await store.openAlerts()).length, 1)
  })
}

function operation(n: number): NewOperation {
  return {
    actor: 'anna (operator)',
    address: n % 2 === 0 ? '10.0.0.7' : null,
    call: 'POST /api/recovery',
    selection: { sources: ['shop'], n },
    plan: n % 2 === 0 ? null : '0123456789abcdef',
    status: n === 3 ? 409 : 200,
    result: `${n} targets put back in line`,
  }
}
