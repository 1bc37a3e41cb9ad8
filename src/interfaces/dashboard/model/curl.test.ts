import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { curlOf } from './curl.ts'

const ORIGIN = 'http://127.0.0.1:4600'

test('a call can be made again from a shell, whatever is in it', () => {
  const body = { because: `it's "fine"; $(touch /tmp/x) \`id\` \\` }
  const command = curlOf({ method: 'POST', path: '/api/runs/5d7a9b1c/cancel', body }, ORIGIN)
  const shell = command.replace(/^curl/, 'printf "%s\\n"')
  const words = execFileSync('sh', ['-c', shell], { encoding: 'utf8', env: { UNSTUCK_TOKEN: 'T' } })
  assert.deepEqual(words.trimEnd().split('\n'), [
    '-sS',
    '-X',
    'POST',
    '-H',
    'Authorization: Bearer T',
    '-H',
    'Content-Type: application/json',
    '-d',
    JSON.stringify(body),
    `${ORIGIN}/api/runs/5d7a9b1c/cancel`,
  ])
})

test('the token is named and never told', () => {
  assert.equal(
    curlOf({ method: 'GET', path: '/api/recovery' }, ORIGIN),
    `curl -sS -H "Authorization: Bearer $UNSTUCK_TOKEN" ${ORIGIN}/api/recovery`,
  )
})
