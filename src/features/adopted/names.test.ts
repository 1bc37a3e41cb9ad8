import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { HONEST_NAMES, hostileName } from '../../testing/hostile-names.ts'
import { nameMistake, quoteName, splitTable, tableMistake } from './names.ts'

test('S11 10,000 hostile names of tables and columns are refused', () => {
  let refused = 0
  fc.assert(
    fc.property(hostileName, (text) => {
      assert.notEqual(tableMistake(text), null)
      assert.notEqual(nameMistake(text), null)
      assert.throws(() => quoteName(text), TypeError)
      refused++
    }),
    { numRuns: 10_000 },
  )
  assert.ok(refused >= 10_000)
  const nameless = ['', '.', 'a.', '.a', null, undefined, 7, ['id'], { toString: () => 'id' }]
  for (const none of nameless) assert.notEqual(tableMistake(none), null)
})

test('what is wrong with a name is said without the name', () => {
  fc.assert(
    fc.property(hostileName, (text) => {
      const said = nameMistake(text)!
      assert.equal(said, said.replace(/[^\x20-\x7e]/g, ''))
      assert.ok(said.length < 200)
    }),
    { numRuns: 500 },
  )
})

test('honest names are taken, and a table may have a schema', () => {
  for (const name of HONEST_NAMES) {
    assert.equal(nameMistake(name), null, name)
    assert.equal(tableMistake(`course_crawler.${name}`), null, name)
    assert.notEqual(nameMistake(`course_crawler.${name}`), null)
  }
  assert.deepEqual(splitTable('course_crawler.crawl_runs'), {
    schema: 'course_crawler',
    table: 'crawl_runs',
  })
  assert.deepEqual(splitTable('runs'), { schema: null, table: 'runs' })
})

test('a quoted name is that one name to a database', () => {
  using db = new DatabaseSync(':memory:')
  for (const name of HONEST_NAMES) {
    db.exec(`CREATE TABLE ${quoteName(name)} (${quoteName(name)} TEXT)`)
    const [column] = db.prepare(`SELECT * FROM ${quoteName(name)}`).columns()
    assert.deepEqual([column!.name, column!.table], [name, name])
    db.exec(`DROP TABLE ${quoteName(name)}`)
  }
})
