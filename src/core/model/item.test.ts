import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { boundedKey, makeItem } from './item.ts'
import { URL_KEY_VERSION } from './url.ts'

test('an address makes the key, and the version of the rule that made it', () => {
  assert.deepEqual(makeItem({ url: 'https://Shop.example/a/?utm_source=x', data: { a: 1 } }), {
    key: 'https://shop.example/a',
    keyVersion: URL_KEY_VERSION,
    url: 'https://Shop.example/a/?utm_source=x',
    data: '{"a":1}',
  })
})

test('a key given by the user takes precedence over the address', () => {
  const item = makeItem({ key: 'acme', url: 'https://shop.example/a', data: null })

  assert.equal(item?.key, 'acme')
  assert.equal(item?.keyVersion, 0)
  assert.equal(item?.url, 'https://shop.example/a')
})

test('without a usable address or key it is no item', () => {
  assert.equal(makeItem({ url: 'not an address', data: 1 }), null)
  assert.equal(makeItem({ key: '', data: 1 }), null)
  assert.equal(makeItem({ key: '', url: 'https://a.example/', data: 1 })?.key, 'https://a.example')
  assert.equal(makeItem({ data: 1 } as never), null)
})

test('data that JSON cannot say is null', () => {
  assert.equal(makeItem({ key: 'a', data: undefined })?.data, 'null')
  assert.equal(makeItem({ key: 'a', data: () => 1 })?.data, 'null')
  assert.equal(makeItem({ key: 'a', data: Symbol('x') })?.data, 'null')
})

test('a long key keeps its start and gains a digest of the whole', () => {
  const long = 'x'.repeat(5_000)

  assert.equal(boundedKey('x'.repeat(1_000)), 'x'.repeat(1_000))
  assert.match(boundedKey(long), /^x{200}…sha256:[0-9a-f]{64}$/)
  assert.notEqual(boundedKey(`${long}a`), boundedKey(`${long}b`))
})

test('always: a key fits into an index, is text that any database keeps as it is, and stays itself', () => {
  const key = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 2_000 }),
    fc.string({ unit: 'grapheme', maxLength: 2_000 }),
    fc.string({
      unit: fc.constantFrom('\ud83d', '\ude00', 'a', '😀'),
      minLength: 1,
      maxLength: 700,
    }),
  )
  fc.assert(
    fc.property(key, (key) => {
      const bounded = boundedKey(key)
      assert.ok(Buffer.byteLength(bounded) <= 1_000)
      assert.ok(bounded.isWellFormed())
      assert.ok(!bounded.includes('\0'))
      assert.equal(boundedKey(bounded), bounded)
    }),
  )
})

test('keys that differ in what no database can store stay different', () => {
  const keys = ['a\ud800', 'a\ud801', 'a\ufffd', 'a\0', 'a']
  assert.equal(new Set(keys.map(boundedKey)).size, keys.length)
  const urls = keys.map((key) => makeItem({ url: `https://a.example/${key}`, data: 1 })!.key)
  assert.equal(new Set(urls).size, keys.length)
})
