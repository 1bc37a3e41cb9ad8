import assert from 'node:assert/strict'
import type { Store } from '../core/store/store.ts'
import { listOperations } from './fixtures.ts'

/**
 * What must work wherever the handler is mounted: no access without login, a list, a change with the user's name, live
 * events, and the dashboard. `url`: where it is, without a slash at the end. Roles are told by the header x-role. `runs`:
 * how many there are.
 */
export async function assertMountedServer(url: string, store: Store, runs = 0): Promise<void> {
  const viewer = { 'x-role': 'viewer' }
  assert.equal((await fetch(`${url}/api/runs`)).status, 401)
  const listed = await fetch(`${url}/api/runs?limit=5`, { headers: viewer })
  assert.deepEqual([listed.status, ((await listed.json()) as any).items.length], [200, runs])
  assert.equal((await fetch(`${url}/api/nowhere`, { headers: viewer })).status, 404)

  const { origin } = new URL(url)
  const change = (headers: Record<string, string>, body: unknown = { source: 'mounted' }) =>
    fetch(`${url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  assert.equal((await change({ ...viewer, origin })).status, 403)
  const operator = { 'x-role': 'operator' }
  assert.equal((await change({ ...operator, origin: 'http://evil.example' })).status, 403)
  assert.equal((await change({ ...operator, origin }, { sourze: 'x' })).status, 400)
  const done = await change({ ...operator, origin })
  assert.equal(done.status, 201, await done.clone().text())
  assert.equal((await store.liveRun('mounted'))?.status, 'queued')
  const { items } = await listOperations(store, 1)
  assert.match(items[0]!.actor, /^a operator \(operator\) via http/)

  await assertLiveEvents(url, viewer)
  await assertDashboard(url)
}

async function assertLiveEvents(url: string, headers: Record<string, string>): Promise<void> {
  const left = new AbortController()
  const stream = await fetch(`${url}/api/events?topics=overview`, { headers, signal: left.signal })
  assert.equal(stream.status, 200)
  assert.match(stream.headers.get('content-type') ?? '', /^text\/event-stream/)
  let text = ''
  for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (/^event: overview\n/m.test(text) && text.includes('\n\n')) break
  }
  assert.match(text, /^data: \{.*"summary"/m)
  left.abort()
}

async function assertDashboard(url: string): Promise<void> {
  const { pathname } = new URL(`${url}/`)
  const page = await fetch(`${url}/runs/0197`)
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  const html = await page.text()
  const asset = / src="([^"]*\/assets\/[^"]+)"/.exec(html)?.[1]
  // A checkout that has not built the dashboard shows how to.
  if (asset === undefined) return assert.match(html, /build:dashboard/)
  assert.ok(html.includes(`data-base="${pathname}"`))
  const script = await fetch(new URL(asset, url))
  assert.equal(script.status, 200)
  assert.match(script.headers.get('content-type') ?? '', /javascript/)
  assert.match(script.headers.get('cache-control') ?? '', /immutable/)
}
