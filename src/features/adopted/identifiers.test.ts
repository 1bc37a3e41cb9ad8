import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { VALID_NAMES, hostileName } from '../../testing/hostile-names.ts'
import {
  identifierMistake,
  quoteIdentifier,
  splitTableName,
  tableNameMistake,
} from './identifiers.ts'

test('S11 10,000 hostile names of tables and columns are refused', () => {
  let refused = 0
  fc.assert(
    fc.property(hostileName, (text) => {
      assert.notEqual(tableNameMistake(text), null)
      assert.notEqual(identifierMistake(text), null)
      assert.throws(() => quoteIdentifier(text), TypeError)
      refused++
    }),
    { numRuns: 10_000 },
  )
  assert.ok(refused >= 10_000)
  const nameless = ['', '.', 'a.', '.a', null, undefined, 7, ['id'], { toString: () => 'id' }]
  for (const none of nameless) assert.notEqual(tableNameMistake(none), null)
})

test('an error about a name does not repeat the name', () => {
  fc.assert(
    fc.property(hostileName, (text) => {
      const said = identifierMistake(text)!
      assert.equal(said, said.replace(/[^\x20-\x7e]/g, ''))
      assert.ok(said.length < 200)
    }),
    { numRuns: 500 },
  )
})

test('valid names are accepted, with or without a schema', () => {
  for (const name of VALID_NAMES) {
    assert.equal(identifierMistake(name), null, name)
    assert.equal(tableNameMistake(`course_crawler.${name}`), null, name)
    assert.notEqual(identifierMistake(`course_crawler.${name}`), null)
  }
  assert.deepEqual(splitTableName('course_crawler.crawl_runs'), {
    schema: 'course_crawler',
    table: 'crawl_runs',
  })
  assert.deepEqual(splitTableName('runs'), { schema: null, table: 'runs' })
})

test('a quoted name is that one name to a database', () => {
  using db = new DatabaseSync(':memory:')
  for (const name of VALID_NAMES) {
    db.exec(`CREATE TABLE ${quoteIdentifier(name)} (${quoteIdentifier(name)} TEXT)`)
    const [column] = db.prepare(`SELECT * FROM ${quoteIdentifier(name)}`).columns()
    assert.deepEqual([column!.name, column!.table], [name, name])
    db.exec(`DROP TABLE ${quoteIdentifier(name)}`)
  }
})
