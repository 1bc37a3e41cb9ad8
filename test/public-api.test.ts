import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { formatPublicApi, PINNED_API, readPublicApi } from '../src/testing/public-api.ts'

const api = readPublicApi()

test('the exports and their declared types are those of public-api.txt', () => {
  const pinned = readFileSync(PINNED_API, 'utf8')
  const update = 'A deliberate change of the public API: run `npm run api` and commit the result.'
  assert.equal(formatPublicApi(api), pinned, update)
})
