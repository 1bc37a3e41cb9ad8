import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseLocation } from './location.ts'

test('every page has an address, and the address names the page', () => {
  const id = '019a8c3e-7d5f-7a4b-8c21-0f3e5d7a9b1c'
  const pages = ['/', '/runs', '/workers', '/recovery', '/dead-letters', '/history', '/login'].map(
    (path) => parseLocation(path, '').page.name,
  )
  assert.deepEqual(pages, [
    'overview',
    'runs',
    'workers',
    'recovery',
    'dead-letters',
    'history',
    'login',
  ])
  assert.deepEqual(parseLocation(`/runs/${id}`, '').page, { name: 'run', id })
  assert.deepEqual(parseLocation('/targets/5d7a9b1c', '').page, { name: 'target', id: '5d7a9b1c' })
})

test('own ids and sources name runs and targets, as in calls of the API', () => {
  for (const [path, what, ref] of [
    ['/runs/crawl_jobs:3', 'run', 'crawl_jobs:3'],
    ['/runs/4711', 'run', '4711'],
    ['/runs/shop', 'run', 'shop'],
    ['/runs/files:a%2Fb', 'run', 'files:a/b'],
    ['/targets/pages:17', 'target', 'pages:17'],
  ] as const)
    assert.deepEqual(parseLocation(path, '').page, { name: 'lookup', what, ref })
})

test('an address that fits nothing leads nowhere, and never into a call of the API', () => {
  for (const path of [
    '/nope',
    '/runs/../api',
    '/runs/%2e%2e',
    '/runs/%',
    '/runs/5d7a9b1c/x',
    '/targets',
    '/workers/5d7a9b1c',
  ]) {
    assert.equal(parseLocation(path, '').page.name, 'nowhere', path)
  }
})

test('a slash at the end changes nothing, and the query is kept', () => {
  const { page, query } = parseLocation('/runs/', '?status=failed')
  assert.equal(page.name, 'runs')
  assert.equal(query.get('status'), 'failed')
})
