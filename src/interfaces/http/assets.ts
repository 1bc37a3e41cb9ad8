import { hash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

/** The same path from `src` and from `dist`. */
const FOLDER = fileURLToPath(new URL('../../../dist/dashboard/', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
}
/** File names contain a hash of the content. */
const CACHE_FOREVER = 'public, max-age=31536000, immutable'
const REVALIDATE = 'no-cache'

const NOT_BUILT_PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Unstuck</title></head>
<body>
<h1>The dashboard is not built</h1>
<p>Build it with <code>npm run build:dashboard</code>, then start this server again. The API is there: <code>/api/overview</code>.</p>
</body>
</html>
`

type Asset = {
  readonly type: string
  readonly bytes: Buffer<ArrayBuffer>
  readonly gzip: Buffer<ArrayBuffer>
  readonly etag: string
  readonly cache: string
}

/** Serves the dashboard's files from memory: no part of a URL becomes a path on the disk. */
export function loadAssets(
  basePath: string,
  folder: string = FOLDER,
): (path: string, request: Request) => Response {
  const files = new Map(
    filesIn(folder).map((name) => {
      const bytes = readFileSync(join(folder, name))
      return [
        `/${name}`,
        makeAsset(name, name === 'index.html' ? withBasePath(bytes, basePath) : bytes),
      ]
    }),
  )
  const index = files.get('/index.html') ?? makeAsset('index.html', Buffer.from(NOT_BUILT_PAGE))
  return (path, request) => {
    const found = files.get(path) ?? (isFileName(path) ? undefined : index)
    return found ? serveAsset(found, request) : new Response('Not found\n', { status: 404 })
  }
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) =>
      join(parentPath, name).slice(join(folder, '/').length).replaceAll('\\', '/'),
    )
}

/** Inserts the base path into the page. A base path has no characters with a meaning in HTML. */
function withBasePath(html: Buffer, basePath: string): Buffer<ArrayBuffer> {
  const text = html.toString().replaceAll('="./', `="${basePath}/`)
  return Buffer.from(text.replace(/<html\b/, `<html data-base="${basePath}/"`))
}

function makeAsset(name: string, bytes: Buffer<ArrayBuffer>): Asset {
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    bytes,
    gzip: gzipSync(bytes, { level: 9 }),
    etag: `"${hash('sha256', bytes, 'base64url').slice(0, 22)}"`,
    cache: name.startsWith('assets/') ? CACHE_FOREVER : REVALIDATE,
  }
}

function serveAsset({ type, bytes, gzip, etag, cache }: Asset, { headers }: Request): Response {
  const shared = { etag, 'cache-control': cache, vary: 'accept-encoding' }
  if (headers.get('if-none-match') === etag)
    return new Response(null, { status: 304, headers: shared })
  const isZipped = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
  const body = isZipped ? gzip : bytes
  return new Response(body, {
    headers: {
      ...shared,
      'content-type': type,
      'content-length': String(body.length),
      ...(isZipped && { 'content-encoding': 'gzip' }),
    },
  })
}

/** A file has a dot in its last part; a page of the dashboard does not. */
function isFileName(path: string): boolean {
  return path.slice(path.lastIndexOf('/')).includes('.')
}
