import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { cutMistakes, flag, integerBetween, object, text, textOf, validate } from './validate.ts'

const SCHEMA = object({
  page: integerBetween(1),
  next: v.optional(v.nullable(textOf('an address'))),
  items: v.optional(v.array(object({ key: text, data: v.unknown() }), 'must be a list of items')),
  labels: v.optional(v.record(v.string(), text)),
  retry: v.optional(flag, false),
})

const mistakesIn = (value: unknown, showsValues = true) =>
  validate(SCHEMA, value, { whole: 'the body', showsValues }).mistakes

test('a valid value comes back as the schema outputs it', () => {
  assert.deepEqual(validate(SCHEMA, { page: 1 }, { whole: 'it' }), {
    value: { page: 1, retry: false },
    mistakes: [],
  })
})

test('every mistake is reported with its place, the rule and the probable name', () => {
  const value = JSON.parse(
    '{"pgae":1,"__proto__":1,"next":7,"items":[{"key":1,"dta":2},"x",[]],"labels":{"a b":3},"retry":0}',
  )
  assert.deepEqual(mistakesIn(value), [
    'there is no "pgae"; did you mean page?',
    'there is no "__proto__"; there are page, next, items, labels, retry',
    'items[0] has no dta; did you mean data?',
    'page is missing: it must be a whole number from 1 to 2147483647',
    'next must be an address, or null, not 7',
    'items[0].key must be text, not 1',
    'items[0].data is missing',
    'items[1] must be an object with key, data, but is "x"',
    'items[2] must be an object with key, data, but is a list',
    'labels["a b"] must be text, not 3',
    'retry must be true or false, not 0',
  ])
})

test('a value that is no object is one mistake', () => {
  const names = 'page, next, items, labels, retry'
  for (const [value, found] of [
    [undefined, 'missing'],
    [null, 'null'],
    [[], 'a list'],
    ['x', '"x"'],
  ] as const) {
    assert.deepEqual(mistakesIn(value), [
      `the body must be an object with ${names}, but is ${found}`,
    ])
    assert.deepEqual(mistakesIn(value, false), ['the body must be an object'])
  }
})

test('values are shown only on request', () => {
  const secret = 'hunter2'
  const [mistake] = mistakesIn({ page: secret }, false)
  assert.equal(mistake, 'page must be a whole number from 1 to 2147483647')
  assert.match(mistakesIn({ page: secret })[0]!, /hunter2/)
})

test('a mistake in a part names the whole path', () => {
  const schema = object({ when: text })
  const { mistakes } = validate(schema, { wen: 1 }, { whole: 'it', at: 'alerts[2]' })
  assert.deepEqual(mistakes, [
    'alerts[2] has no wen; did you mean when?',
    'alerts[2].when is missing: it must be text',
  ])
})

test('a long list of mistakes is cut', () => {
  assert.deepEqual(cutMistakes(['a', 'b', 'c'], 2), ['a', 'b', '1 more'])
  assert.deepEqual(cutMistakes(['a', 'b'], 2), ['a', 'b'])
})
