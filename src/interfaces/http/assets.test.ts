import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { loadAssets } from './assets.ts'
import { normalizeBasePath } from './mount-options.ts'

const PAGE =
  '<!doctype html><html><head><script type="module" src="./assets/a-1.js"></script></head></html>'
const SCRIPT = 'export const a = 1;\n'.repeat(100)

function get(headers: Record<string, string> = {}): Request {
  return new Request('http://localhost/', { headers })
}

function buildAssets(basePath: string): Disposable & { serve: ReturnType<typeof loadAssets> } {
  const folder = temporaryFolder()
  mkdirSync(join(folder.path, 'assets'))
  writeFileSync(join(folder.path, 'index.html'), PAGE)
  writeFileSync(join(folder.path, 'assets', 'a-1.js'), SCRIPT)
  const serve = loadAssets(basePath, folder.path)
  return { serve, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

test('every address of the dashboard is its page, which knows where it is mounted', async () => {
  using at = buildAssets('/ops/unstuck')
  for (const path of ['/', '/runs', '/runs/0197', '/dead-letters', '/index.html']) {
    const response = at.serve(path, get())
    assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.equal(response.headers.get('cache-control'), 'no-cache')
    const html = await response.text()
    assert.match(html, /<html data-base="\/ops\/unstuck\/">/, path)
    assert.match(html, / src="\/ops\/unstuck\/assets\/a-1\.js"/, path)
  }
  using root = buildAssets('')
  const html = await root.serve('/', get()).text()
  assert.match(html, /<html data-base="\/">/)
  assert.match(html, / src="\/assets\/a-1\.js"/)
})

test('a file is kept for ever, small on the way, and not sent twice', async () => {
  using at = buildAssets('')
  const plain = at.serve('/assets/a-1.js', get())
  assert.equal(plain.headers.get('cache-control'), 'public, max-age=31536000, immutable')
  assert.equal(plain.headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.equal(await plain.text(), SCRIPT)
  const zipped = at.serve('/assets/a-1.js', get({ 'accept-encoding': 'br, gzip' }))
  assert.equal(zipped.headers.get('content-encoding'), 'gzip')
  const bytes = Buffer.from(await zipped.arrayBuffer())
  assert.equal(Number(zipped.headers.get('content-length')), bytes.length)
  assert.equal(gunzipSync(bytes).toString(), SCRIPT)
  const etag = plain.headers.get('etag')!
  const again = at.serve('/assets/a-1.js', get({ 'if-none-match': etag }))
  assert.deepEqual([again.status, await again.text()], [304, ''])
})

test('S13 nothing but the files that were there at the start is ever read', () => {
  using at = buildAssets('')
  const wrong = [
    '/assets/../package.json',
    '/../../package.json',
    '/assets/b.js',
    '/assets/a-1.js/',
    '/etc/passwd.txt',
    '/assets/a-1.js%00',
    '/.env',
  ]
  const isPage = (path: string): boolean =>
    at.serve(path, get()).headers.get('content-type') === 'text/html; charset=utf-8'
  for (const path of wrong) {
    const { status } = at.serve(path, get())
    assert.ok(status === 404 || isPage(path), path)
  }
  assert.equal(at.serve('/assets/b.js', get()).status, 404)
  assert.equal(at.serve('/favicon.ico', get()).status, 404)
})

test('without a built dashboard the page explains how to build it', async () => {
  const serve = loadAssets('', '/nowhere')
  assert.match(await serve('/runs', get()).text(), /npm run build:dashboard/)
})

test('a base path has nothing in it that means something in HTML, a cookie or a pattern', () => {
  const right = { '': '', '/': '', '/unstuck': '/unstuck', '/a/b-c_d.e~f/': '/a/b-c_d.e~f' }
  for (const [given, path] of Object.entries(right)) assert.equal(normalizeBasePath(given), path)
  for (const path of [
    'unstuck',
    '/a"b',
    '/a;b',
    '/a b',
    '/../x',
    '//x',
    '/a/*',
    '/:a',
    '/api',
    '/ä',
  ])
    assert.throws(() => normalizeBasePath(path), { code: 'E_USAGE' }, path)
})
