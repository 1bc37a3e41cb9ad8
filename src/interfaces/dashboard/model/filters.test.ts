import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isFiltered, readFilters, writeFilters } from './filters.ts'

const SPEC = { status: 'many', source: 'one', q: 'one' } as const

test('any set of filters round-trips through its address', () => {
  const value = fc.string({ unit: 'grapheme', minLength: 1 })
  const filters = fc.record(
    {
      status: fc.array(value),
      source: fc.option(value, { nil: '' }),
      q: fc.option(value, { nil: '' }),
    },
    { noNullPrototype: true },
  )
  fc.assert(
    fc.property(filters, (set) => {
      const query = new URLSearchParams(writeFilters(SPEC, set))
      assert.deepEqual(readFilters(SPEC, query), set)
    }),
  )
})

test('nothing set is a bare address', () => {
  assert.equal(writeFilters(SPEC, { status: [], q: '' }), '')
  assert.equal(isFiltered(SPEC, readFilters(SPEC, new URLSearchParams())), false)
})

test('unknown filters are ignored', () => {
  const filters = readFilters(SPEC, new URLSearchParams('?status=failed&status=&token=x&q=a%26b'))
  assert.deepEqual(filters, { status: ['failed'], source: '', q: 'a&b' })
  assert.equal(writeFilters(SPEC, filters), '?status=failed&q=a%26b')
})
