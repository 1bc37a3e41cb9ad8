import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOSTILE_TEXTS } from '../testing/hostile-text.ts'
import { nameMistake, quoteName, splitTable, tableMistake } from './names.ts'

const words = (text: string): string[] => text.split(' ')

const HONEST = words('id createdAt _hidden a STATUS extracted_total_tenders x1$2 select')
HONEST.push('x'.repeat(63))

/** By their numbers, because one cannot see them, or cannot tell them from honest ones. */
const UNSEEN = [
  '0 7 8 9 a b d 1b 7f 85 2028 2029', // controls, ends of lines
  'a0 1680 2003 202f 3000 ad 200b 200d 2060 feff', // spaces and less
  '200e 200f 61c 202a 202e 2066 2069 301 e0061', // directions, marks, tags
  '430 3bf ff41 212a 17f 131 e9 df 1d41a 1f600 d83d dc00', // letters, almost; halves of characters
  'ff11 663 b2 ff3f 203f ff04 fe69 ff0d 2212 2013', // digits and signs, almost
  'ff02 2ba 201d ff07 2bc 2018 ff1b 37e ff0e 2024', // quotes and stops
].flatMap((line) => words(line).map((code) => String.fromCodePoint(Number.parseInt(code, 16))))

/** One of these anywhere in a name, and it is none. */
const BAD = [
  UNSEEN,
  words(`" ' \` ; \\ ( ) [ ] { } < > % # @ ? ! & | = + * / : , ~ ^ "" -- /* */ .. $1;`),
  words('${id} {{id}} $(id) <%=id%> :name %s \\u0022 %22 &quot; \\x22 ";VACUUM;"'),
  ['"; DROP TABLE runs; --', "' OR '1'='1", '" UNION SELECT 1 --', 'U&"\\0022"'],
  [' ', '-', ' OR ', ' UNION SELECT ', ' -', '- ', '. ', ' .', '-.', '\r\n'],
].flat()

const honest = fc.constantFrom(...HONEST)
const hostile = fc.oneof(
  fc.tuple(honest, fc.constantFrom(...BAD), honest).map((parts) => parts.join('')),
  fc.tuple(fc.constantFrom(...BAD), honest).map((parts) => parts.join('')),
  fc.tuple(honest, fc.constantFrom(...BAD)).map((parts) => parts.join('')),
  fc.constantFrom(...HOSTILE_TEXTS.filter((text) => !/^[\w$]+(?:[.][\w$]+)*$/.test(text))),
  fc.tuple(honest, honest, honest).map((parts) => parts.join('.')),
  fc.string({ unit: fc.constantFrom('a', 'B', '7', '_'), minLength: 64, maxLength: 300 }),
  fc.tuple(fc.constantFrom('0', '9', '$', '-', ' ', '.'), honest).map((parts) => parts.join('')),
  fc.tuple(honest, fc.constantFrom('-', ' ', '.')).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }).filter((text) => /[^\w$.]/.test(text)),
)

test('S11 10,000 hostile names of tables and columns are refused', () => {
  let refused = 0
  fc.assert(
    fc.property(hostile, (text) => {
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
    fc.property(hostile, (text) => {
      const said = nameMistake(text)!
      assert.equal(said, said.replace(/[^\x20-\x7e]/g, ''))
      assert.ok(said.length < 200)
    }),
    { numRuns: 500 },
  )
})

test('honest names are taken, and a table may have a schema', () => {
  for (const name of HONEST) {
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
  for (const name of HONEST) {
    db.exec(`CREATE TABLE ${quoteName(name)} (${quoteName(name)} TEXT)`)
    const [column] = db.prepare(`SELECT * FROM ${quoteName(name)}`).columns()
    assert.deepEqual([column!.name, column!.table], [name, name])
    db.exec(`DROP TABLE ${quoteName(name)}`)
  }
})
