import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { redact, redactor } from '../../core/model/redact.ts'
import { cpuMs } from '../../testing/cpu-time.ts'
import { safeJson, safeText } from './safe-text.ts'

const HOSTILE = [
  ['clipboard', '\x1b]52;c;aGk=\x07', '\\x1b]52;c;aGk=\\x07'],
  ['hidden link', '\x1b]8;;https://evil.example\x1b\\x', '\\x1b]8;;https://evil.example\\x1b\\x'],
  ['8-bit control sequence', 'a\u009b2Jb', 'a\\x9b2Jb'],
  ['overwritten line', 'good\rbad', 'good bad'],
  ['new line', 'one\r\ntwo\nthree\u2028four', 'one two three four'],
  ['reading direction', 'abc\u202Egpj.exe', 'abc\\u202egpj.exe'],
  ['invisible tag', 'a\u{e0041}b', 'a\\u{e0041}b'],
  ['lone surrogate', 'a\ud800b', 'a\ufffdb'],
] as const

for (const [what, text, safe] of HOSTILE) {
  test(`text with a ${what} cannot act on a terminal`, () => assert.equal(safeText(text), safe))
}

test('ordinary text of any language stays as it is', () => {
  for (const text of ['plain', 'Größe', '東京', 'नमस्ते', '👩‍👩‍👧', ''])
    assert.equal(safeText(text), text)
})

test('whatever comes in, one line without control characters comes out', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.doesNotMatch(safeText(text), /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u)
    }),
  )
})

test('safe JSON means the same, and holds no control characters but its own line feeds', () => {
  fc.assert(
    fc.property(fc.json(), fc.string({ unit: 'binary' }), (json, text) => {
      const value: unknown = [JSON.parse(json), text]
      const safe = safeJson(value, 2)
      assert.deepEqual(JSON.parse(safe), JSON.parse(JSON.stringify(value)))
      assert.doesNotMatch(safe, /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e]/u)
    }),
  )
})

const SECRETS = [
  'postgres://me:hunter2@db.example/x',
  'postgresql://me:p@ss/hunter2@db.example/x',
  'could not reach "postgres://me:hunter2@db.example:5432/x?sslmode=require"',
  'postgres://db.example/x?user=me&password=hunter2&sslmode=require',
  'https://me:hunter2@proxy.example:8080/',
]

for (const text of SECRETS) {
  test(`no password is left in ${redact(text)}`, () => assert.doesNotMatch(redact(text), /hunter2/))
}

test('addresses without credentials stay as they are', () => {
  for (const text of ['https://medium.com/@someone/a:b', 'sqlite:/a@b/c.db', 'a: b@c']) {
    assert.equal(redact(text), text)
  }
})

test('JSON stays JSON when secrets are taken out of it', () => {
  const parts = fc.constantFrom('://', '@', ':', '"', '\\', '?token=', 'a', '\n', 'postgres', '/')
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 12 }), (text) => {
      JSON.parse(redact(JSON.stringify({ text: text.join('') })))
    }),
    { numRuns: 2_000 },
  )
})

const CANARY = 's/ecr@t-hunter2'

for (const [what, text] of [
  ['as it is', `password: ${CANARY}.`],
  ['as it stands in an address', `?x=${encodeURIComponent(CANARY)}&y`],
  ['twice', `${CANARY}${CANARY}`],
]) {
  test(`a secret that is known is taken out ${what}`, () => {
    for (const known of [
      CANARY,
      `postgres://me:${CANARY}@db.example/x`,
      `postgres://me:${encodeURIComponent(CANARY)}@db.example/x`,
      `postgres://db.example/x?password=${encodeURIComponent(CANARY)}`,
    ]) {
      assert.doesNotMatch(redactor([known])(text!), /hunter2/)
    }
  })
}

test('a value too short to be a secret is not redacted', () => {
  assert.equal(redactor(['', 'a', 'abc'])('abc banana'), 'abc banana')
  assert.equal(redactor([])('postgres://me:hunter2@db/x'), 'postgres://***@db/x')
})

test('a hostile text takes no longer than its length', () => {
  const texts = [
    `@${'postgres://'.repeat(5_000)}`,
    `${'postgres://'.repeat(5_000)} @`,
    `x://${':'.repeat(50_000)}/@`,
    `x://a:${'@'.repeat(50_000)}`,
    `${'a'.repeat(50_000)}://@`,
  ]
  assert.ok(cpuMs(() => texts.forEach((text) => redact(text))) < 1_000)
})
