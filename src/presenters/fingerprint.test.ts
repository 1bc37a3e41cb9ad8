import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMs } from '../testing/cpu-time.ts'
import { fingerprintOf, errorKind } from './fingerprint.ts'

/** An error and its kind. */
const KINDS: [string, string][] = [
  ['', ''],
  ['HTTP 503', 'http 503'],
  ['exit code: 137 after 12 s', 'exit code: 137 after <n> s'],
  ['GET https://a.example/p?x=1&y=2 answered 403', 'get <url> answered 403'],
  ['GET (http://b.example/) failed', 'get (<url>) failed'],
  ['timeout of 30000 ms exceeded', 'timeout of <n> ms exceeded'],
  ['took 1,204.5 s, until 12:30:01', 'took <n> s, until <n>'],
  ['no element "div.price" on page 12', 'no element <text> on page <n>'],
  [
    "Cannot read properties of undefined (reading 'name')",
    'cannot read properties of undefined (reading <text>)',
  ],
  ["the site can't be reached, and won't be", "the site can't be reached, and won't be"],
  ['run 0192aa0e-5f13-7c33-9a55-0242ac120002 lost it', 'run <id> lost it'],
  ['process 4242 crashed at 0xDEADbeef', 'process <n> crashed at <id>'],
  ['commit 9f86d081884c7d65 is not there', 'commit <id> is not there'],
  ['the facade was effaced', 'the facade was effaced'],
  ['Parse error\n    at parse (/srv/app/parse.js:10:2)', 'parse error'],
  ['  spaces \t everywhere ', 'spaces everywhere'],
]

test("details of a single occurrence are not part of an error's kind", () => {
  for (const [error, kind] of KINDS) assert.equal(errorKind(error), kind)
})

test('errors of one kind have one fingerprint, those of two have two', () => {
  const fingerprints = [
    fingerprintOf('GET https://a.example/1 answered 403'),
    fingerprintOf('GET https://b.example/22 answered 403'),
    fingerprintOf('POST https://a.example/1 answered 403'),
  ]

  assert.equal(fingerprints[0], fingerprints[1])
  assert.notEqual(fingerprints[0], fingerprints[2])
  for (const one of fingerprints) assert.match(one, /^[0-9a-f]{12}$/)
})

test('hostile text costs no time', () => {
  const spentMs = cpuMs(() => {
    for (const piece of ['"', "'", '`', 'a://', 'f', '0', '1,', ' ', '“', 'https://a\u202e']) {
      errorKind(piece.repeat(50_000))
    }
  })
  assert.ok(spentMs < 500, `${spentMs} ms`)
})
