import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compare, isAllDone, type Differences, type Outcome, type RunFacts } from './compare.ts'

function run(source: string, change: Partial<RunFacts> = {}): RunFacts {
  return {
    id: `${source}-1`,
    source,
    status: 'succeeded',
    retryOf: null,
    pages: 3,
    refused: 0,
    ...change,
  }
}

const reference: Outcome = {
  runs: [run('shop')],
  targets: [
    { source: 'shop', key: 'books', status: 'done', page: 2 },
    { source: 'shop', key: 'toys', status: 'done', page: 1 },
  ],
  items: ['a', 'b', 'c'].map((key) => ({ source: 'shop', key, data: { name: key } })),
  output: ['a', 'b', 'c', 'c'],
}

/** Only what is not as it should be. */
function differences(change: Partial<Outcome>, ignoreData = false): Partial<Differences> {
  const found = Object.entries(compare(reference, { ...reference, ...change }, { ignoreData }))
  return Object.fromEntries(found.filter(([, one]) => (Array.isArray(one) ? one.length > 0 : one)))
}

test('the same outcome in any order is no difference', () => {
  assert.deepEqual(
    differences({
      items: reference.items.toReversed(),
      targets: reference.targets.toReversed(),
      output: reference.output!.toReversed(),
    }),
    {},
  )
})

test('a missing item is lost, a new one unexpected, and one does not make up for the other', () => {
  const [first, ...rest] = reference.items
  assert.deepEqual(differences({ items: rest }), { itemsLost: ['shop a'] })
  assert.deepEqual(differences({ items: [...rest, { ...first!, key: 'A' }] }), {
    itemsLost: ['shop a'],
    itemsUnexpected: ['shop A'],
  })
})

test('the same key in another source is another item', () => {
  const [first, ...rest] = reference.items
  const { itemsLost } = differences({ items: [...rest, { ...first!, source: 'other' }] })
  assert.deepEqual(itemsLost, ['shop a'])
})

test('other data is a difference, unless it is to be ignored; the order of fields is none', () => {
  const data = (value: unknown) => ({
    items: reference.items.map((item) => (item.key === 'b' ? { ...item, data: value } : item)),
  })
  assert.deepEqual(differences(data({ name: 'B' })), { itemsDifferent: ['shop b'] })
  assert.deepEqual(differences(data({ name: 'B' }), true), {})
  const twoFields: Outcome = { ...reference, ...data({ x: 1, y: 2 }) }
  const turned = { ...reference, ...data({ y: 2, x: 1 }) }
  assert.deepEqual(compare(twoFields, turned, { ignoreData: false }).itemsDifferent, [])
})

test('a target that ended earlier or later is reported with its pages', () => {
  const [books, toys] = reference.targets
  assert.deepEqual(
    differences({
      targets: [
        { ...books!, page: 1 },
        { ...toys!, page: 3 },
      ],
    }),
    {
      targetsShort: ['shop books: page 1 instead of 2'],
      targetsBeyond: ['shop toys: page 3 instead of 1'],
      pagesLost: 1,
      pagesBeyond: 2,
    },
  )
})

test('a target that is not there is lost with all its pages', () => {
  const [, toys] = reference.targets
  assert.deepEqual(differences({ targets: [toys!, { ...toys!, key: 'games' }] }), {
    targetsLost: ['shop books'],
    targetsUnexpected: ['shop games'],
    pagesLost: 2,
  })
})

test('a target and a run that ended otherwise are named', () => {
  const [books, toys] = reference.targets
  const found = differences({
    targets: [books!, { ...toys!, status: 'parked' }],
    runs: [run('shop', { status: 'failed' })],
  })
  assert.deepEqual(found, {
    targetsOpen: ['shop toys: parked instead of done'],
    runsOpen: ['shop: failed'],
  })
  assert.deepEqual(differences({ runs: [run('shop', { status: 'interrupted' })] }), {
    runsOpen: ['shop: left interrupted'],
  })
})

test('a failed run that was tried again is no difference, and neither is one that fails without kills too', () => {
  const failed = run('shop', { status: 'failed' })
  assert.deepEqual(
    differences({ runs: [run('shop', { id: 'new', retryOf: failed.id }), failed] }),
    {},
  )
  const usual: Outcome = { ...reference, runs: [failed] }
  assert.deepEqual(compare(usual, usual, { ignoreData: false }).runsOpen, [])
})

test('the output counts each key as often as the reference has it', () => {
  assert.deepEqual(differences({ output: ['a', 'a', 'b', 'c', 'x'] }), {
    outputLost: ['c'],
    outputDoubled: ['a: 2 times instead of 1'],
    outputUnexpected: ['x'],
  })
  assert.deepEqual(differences({ output: null }).outputLost, ['a', 'b', 'c', 'c'])
})

test('all is done when every source has had its run and none is live', () => {
  const two = [run('shop'), run('news')]
  assert.equal(isAllDone(two, two), true)
  assert.equal(isAllDone(two, [run('shop')]), false)
  assert.equal(isAllDone(two, [run('shop'), run('news', { status: 'interrupted' })]), false)
  assert.equal(isAllDone(two, [run('shop'), run('news', { status: 'failed' })]), true)
})
