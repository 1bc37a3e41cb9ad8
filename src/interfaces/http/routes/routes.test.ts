import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ALL_ROUTES } from '../../../testing/all-routes.ts'

test('docs/reference/http-api.md names every call, and no other', () => {
  const page = readFileSync(
    new URL('../../../../docs/reference/http-api.md', import.meta.url),
    'utf8',
  )
  const rows = page.split('\n').filter((line) => line.startsWith('|'))
  const named = rows.flatMap((row) =>
    [...row.matchAll(/`((?:GET|POST|DELETE) \/[^`]+)`/g)].map(([, call]) => call!),
  )
  const outside = ['GET /healthz', 'GET /readyz']
  const there = ALL_ROUTES.map(({ method, path }) => `${method} ${path}`)

  assert.deepEqual(
    named.toSorted(),
    [...there.filter((call) => call !== 'GET /api/openapi.json'), ...outside].sort(),
  )
})

test('no two calls share a name, and whatever changes something needs more than looking', () => {
  const calls = ALL_ROUTES.map(({ method, path }) => `${method} ${path}`)
  assert.equal(new Set(calls).size, calls.length)
  for (const { method, path, role } of ALL_ROUTES)
    assert.equal(role === 'viewer', method === 'GET', path)
})
