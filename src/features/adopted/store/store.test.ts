import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId, type Id } from '../../../core/model/id.ts'
import { enqueueCrawl } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { ADOPTED_STORE, type AdoptedStore, type IntentResult, type NewIntent } from './store.ts'

/** An operation on the row `key` of an adopted table. */
function intent(key: string, given: Partial<NewIntent> = {}): NewIntent {
  const row = given.row ?? newId()
  return {
    id: newId(),
    row,
    ref: { table: 'courses', key },
    entry: {
      actor: 'alice',
      action: 'abandon',
      source: 'courses',
      run: row,
      target: null,
      because: 'nothing done in 2 days',
      evidence: { ageMs: 5, owner: null },
      before: { status: 'running' },
      after: { status: 'abandoned' },
    },
    reopens: false,
    ...given,
  }
}

async function conclude(
  store: AdoptedStore,
  id: Id,
  isDone: IntentResult['isDone'],
): Promise<boolean> {
  return (await store.concludeIntents([{ id, isDone }]))[0]!
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`P15 the audit entry of an operation on a user's row looks like that of an operation on a run, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const own = await enqueueCrawl(store, 1)
    const auditInfo = { actor: 'alice', action: 'abandon', because: 'nothing done in 2 days' }
    const evidence = { ageMs: 5, owner: null }
    await store.moveRun({ ...auditInfo, run: own, to: 'abandoned', evidence, expected: {} })
    const [likeThis] = await store.audit({ run: own, limit: 5 })

    const about = intent('17')
    await store.recordIntents([
      { ...about, entry: { ...about.entry, source: 'shop', before: { status: 'queued' } } },
    ])
    assert.deepEqual(await store.audit({ run: about.row, limit: 5 }), [], 'not before it is done')
    assert.equal(await conclude(store, about.id, true), true)

    const [entry, ...others] = await store.audit({ run: about.row, limit: 5 })
    assert.deepEqual(others, [])
    const { id, at } = entry!
    assert.deepEqual(entry, { ...likeThis, run: about.row, id, at })
    assert.ok(id > likeThis!.id && at >= likeThis!.at)
    assert.deepEqual(await store.rememberedRows([newId(), about.row, own]), [
      { id: about.row, table: 'courses', key: '17', reopenedAt: null, acknowledged: null },
    ])
  })

  test(`P2 of ten processes that conclude an intent at once one does, and it is audited once, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(
      Array.from({ length: 10 }, () => openExtended(db, ADOPTED_STORE)),
    )
    const [store] = stores
    const about = intent('1')
    await store!.recordIntents([about])
    await store!.recordIntents([{ ...about, reopens: true }])

    const settled = await Promise.all(stores.map((one) => conclude(one, about.id, true)))

    assert.equal(settled.filter(Boolean).length, 1)
    assert.equal((await store!.audit({ limit: 20 })).length, 1)
    assert.equal(
      (await store!.rememberedRows([about.row]))[0]!.reopenedAt,
      null,
      'as first recorded',
    )
    assert.equal(await conclude(store!, about.id, false), false)
    assert.equal(await conclude(store!, newId(), true), false)
  })

  test(`P2 concluding many intents returns a result for each, and audits those that were done in their order, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const [done, notDone, unsure, settled] = ['1', '2', '3', '4'].map((key) => intent(key))
    const all = [done!, notDone!, unsure!, settled!]
    await store.recordIntents(all)
    await conclude(store, settled!.id, false)

    const answers = await store.concludeIntents([
      { id: unsure!.id, isDone: 'unsure' },
      { id: settled!.id, isDone: true },
      { id: done!.id, isDone: true },
      { id: notDone!.id, isDone: false },
    ])

    assert.deepEqual(answers, [true, false, true, true])
    const entries = await store.audit({ limit: 5 })
    assert.deepEqual(
      entries.map(({ run }) => run),
      [unsure!.row, done!.row],
    )
    assert.equal((await store.rememberedRows(all.map(({ row }) => row))).length, 2)
    assert.deepEqual(await store.openIntents(0, 5), [])
  })

  test(`an intent that was not done is forgotten, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const about = intent('1')
    await store.recordIntents([about])

    assert.equal(await conclude(store, about.id, false), true)

    assert.equal(await conclude(store, about.id, true), false)
    assert.deepEqual(await store.audit({ limit: 5 }), [])
    assert.deepEqual(await store.rememberedRows([about.row]), [])
    assert.deepEqual(await store.openIntents(0, 5), [])
  })

  test(`an unsure intent is audited as unsure, and its row is remembered, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const about = intent('1')
    await store.recordIntents([about])

    assert.equal(await conclude(store, about.id, 'unsure'), true)

    const [entry] = await store.audit({ limit: 5 })
    assert.deepEqual(entry?.after, { status: 'abandoned', unsure: true })
    assert.equal((await store.rememberedRows([about.row])).length, 1)
    assert.equal(await conclude(store, about.id, true), false)
  })

  test(`old open intents are listed oldest first, as they were recorded, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const [first, second, young] = [intent('1'), intent('2', { reopens: true }), intent('3')]
    await store.recordIntents([first])
    await db.advanceClock(20_000)
    await store.recordIntents([second])
    await db.advanceClock(30_000)
    await store.recordIntents([young])

    const open = await store.openIntents(30_000, 5)

    assert.deepEqual(
      open.map(({ at: _at, ...recorded }) => recorded),
      [first, second],
    )
    const now = await store.now()
    const ages = open.map(({ at }) => Math.round((now - at) / 10_000))
    assert.deepEqual(ages, [5, 3])
    assert.deepEqual(
      (await store.openIntents(0, 1)).map(({ id }) => id),
      [first.id],
    )
  })

  test(`a reopened row is remembered as reopened until it changes, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const row = newId()
    const reopenedAt = async () => (await store.rememberedRows([row]))[0]?.reopenedAt
    const concludeAs = async (reopens: boolean) => {
      const about = intent('1', { row, reopens })
      await store.recordIntents([about])
      await conclude(store, about.id, true)
    }

    await concludeAs(true)
    assert.ok(Math.abs((await reopenedAt())! - (await store.now())) < 60_000)
    await store.forgetReopening([newId(), row])
    assert.equal(await reopenedAt(), null)
    await concludeAs(true)
    await concludeAs(false)
    assert.equal(await reopenedAt(), null, 'another operation came after it')
    assert.equal((await store.audit({ run: row, limit: 5 })).length, 3)
  })

  test(`every text of a user's row can be stored, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ADOPTED_STORE)
    const odd = 'a\0b \ud83d "; DROP'
    const plain = intent(odd)
    const about = { ...plain, entry: { ...plain.entry, because: odd, before: { [odd]: odd } } }

    await store.recordIntents([about])
    assert.equal((await store.openIntents(0, 5)).length, 1)
    assert.equal(await conclude(store, about.id, true), true)

    assert.match((await store.audit({ limit: 1 }))[0]!.because, /^a.?b .*DROP$/su)
    assert.equal((await store.rememberedRows([about.row])).length, 1)
  })
}
