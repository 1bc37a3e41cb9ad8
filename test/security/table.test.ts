import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** docs/reference/security.md says which test holds which point: this one holds the page to the tests. */

const ROOT = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
/** The points of the first list are all there; those learned later are added as they are done. */
const POINTS = 34
const POINTS_MAX = 42

test('S34 every point of docs/reference/security.md names existing tests, or states what is missing', () => {
  const rows = read('docs/reference/security.md')
    .split('\n')
    .filter((line) => /^\| S\d+ \|/.test(line))
    .map((line) => line.slice(2, -2).split(' | '))
  const points = rows.map(([point]) => Number(point!.slice(1)))
  const first = Array.from({ length: POINTS }, (_, n) => n + 1)
  assert.deepEqual(points.slice(0, POINTS), first)
  assert.deepEqual(
    points,
    [...new Set(points)].sort((a, b) => a - b),
  )
  assert.ok(points.at(-1)! <= POINTS_MAX)
  for (const [point, what, tests] of rows) {
    assert.ok(what && tests, point)
    const named = [...tests.matchAll(/`([^`]+)`: (.+?)(?=<br>|$)/g)]
    const isOpen = /\*(Not there|Partly|Open)\*/.test(what)
    assert.ok(named.length > 0 || isOpen, `${point} names no test`)
    for (const [, file, title] of named) {
      assert.ok(titlesIn(file!).includes(title!), `${point}: ${file} has no “${title}”`)
    }
  }
})

test('S34 a weakness can be reported in private, and the page on threats is found', () => {
  const page = read('SECURITY.md')
  assert.match(page, /privately/)
  assert.match(page, /docs\/reference\/security\.md/)
  assert.match(page, /unstuck doctor --security/)
  assert.match(read('README.md'), /docs\/reference\/security\.md/)
})

function titlesIn(file: string): string[] {
  const calls = [...read(file).matchAll(/\btest\(\s*(['"`])([^]*?)\1,/g)]
  return calls.map(([, , text]) => text!.replace(/\$\{[^}]*\}/g, '…'))
}
