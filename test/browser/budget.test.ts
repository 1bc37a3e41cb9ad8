import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'

const BUILT = join(import.meta.dirname, '../../dist/dashboard')
const read = (file: string): string => readFileSync(join(BUILT, file), 'utf8')
const built = (ending: string): string[] => globSync(`**/*.${ending}`, { cwd: BUILT })

test('the dashboard is small: its scripts take less than 120 KB on the way', () => {
  const bytes = built('js').map((file) => gzipSync(read(file)).length)
  assert.ok(bytes.length > 0, 'it is not built: npm run build:dashboard')
  const all = bytes.reduce((sum, one) => sum + one, 0)
  assert.ok(all < 120_000, `${all} bytes`)
})

test('its page has no script and no style of its own, so the policy can refuse all of them', () => {
  const html = read('index.html')
  assert.match(html, /<script /)
  for (const [tag] of html.matchAll(/<script\b[^>]*>/g)) assert.match(tag, / src="\.\/assets\//)
  assert.doesNotMatch(html, /<style|\bstyle=|\bon\w+=|javascript:/i)
})

test('it loads no font, script or image from another site', () => {
  for (const file of [...built('html'), ...built('css')]) {
    assert.doesNotMatch(
      read(file),
      /(src|href)="(https?:)?\/\/|url\(["']?(https?:)?\/\/|@import/,
      file,
    )
  }
})
