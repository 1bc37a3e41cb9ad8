import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Engine } from '../../../testing/test-database.ts'
import type { NewOperation } from '../store.ts'

export function operationTests(engine: Engine): void {
  test('operations over HTTP are stored in their order, and read page by page', async () => {
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

  test('every text of an operation can be stored', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const odd = 'a\0b \ud83d <script>'

    const texts = { actor: odd, address: odd, call: odd, plan: odd, result: odd }
    await store.recordOperation({ ...operation(0), ...texts, selection: { odd, [odd]: [odd] } })
    await store.recordOperation({ ...operation(1), selection: undefined })

    const { items } = await store.operations({ limit: 2 })
    assert.equal(items[0]!.selection, null)
    assert.match(items[1]!.result, /^a.?b .*<script>$/su)
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
