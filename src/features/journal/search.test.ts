import assert from 'node:assert/strict'
import { appendFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId } from '../../core/model/id.ts'
import { journalName } from '../../lib/files/journal.ts'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { searchJournals } from './search.ts'

const RUN = newId()
const SINCE = new Date(Date.now() - 3_600_000)

/** So many seconds after the beginning. */
function line(worker: string, seconds: number, facts: object = { run: RUN }): string {
  const time = new Date(SINCE.getTime() + seconds * 1_000).toISOString()
  return `${JSON.stringify({ time, worker, type: 'page_complete', n: seconds, ...facts })}\n`
}

async function numbers(folder: string, after: string | null = null, limit = 100) {
  const { entries, next } = await searchJournals(folder, { run: RUN, after, since: SINCE, limit })
  return { found: entries.map(({ n }) => n), next }
}

test('entries of several journals about a run come in order of time, and later ones follow', async () => {
  using folder = temporaryFolder()
  const [one, other] = [newId(), newId()]
  // One is named as by earlier versions.
  const names = new Map([
    [one, `${one}.jsonl`],
    [other, journalName('shop', other, 4711)],
  ])
  const pathOf = (worker: string) => join(folder.path, names.get(worker)!)
  const verdict = { verdict: { run: RUN, action: 'resume' } }
  writeFileSync(pathOf(one), line(one, 1) + line(one, 3) + line(one, 5, { run: newId() }))
  writeFileSync(pathOf(other), line(other, 2) + line(other, 4, verdict) + line(other, 6, {}))
  const first = await numbers(folder.path)
  assert.deepEqual(first.found, [1, 2, 3, 4])
  assert.deepEqual((await numbers(folder.path, null, 2)).found, [3, 4])
  assert.deepEqual(await numbers(folder.path, first.next), { found: [], next: first.next })
  // Two more at the very time of the last one: none is told twice, none is left out.
  appendFileSync(pathOf(one), line(one, 7) + line(one, 7))
  const second = await numbers(folder.path, first.next, 1)
  assert.deepEqual(second.found, [7])
  appendFileSync(pathOf(other), line(other, 8))
  assert.deepEqual((await numbers(folder.path, second.next)).found, [7, 8])
})

test('only the end of a long journal is read, and damage is passed over', async () => {
  using folder = temporaryFolder()
  const worker = newId()
  const path = join(folder.path, `${worker}.jsonl`)
  const noise = line(worker, 1, { run: newId(), fill: 'x'.repeat(500) }).repeat(4_000)
  writeFileSync(
    path,
    `${line(worker, 0)}${noise}\xff{"time"\nnull\n[]\n7\n${line(worker, 2)}{"time":"2`,
  )
  assert.deepEqual((await numbers(folder.path)).found, [2])
})

test('only files with a name of ours are read, no links, and none that ended before', async () => {
  using folder = temporaryFolder()
  using elsewhere = temporaryFolder()
  const worker = newId()
  const secret = join(elsewhere.path, 'secret.jsonl')
  writeFileSync(secret, line(worker, 1))
  symlinkSync(secret, join(folder.path, `${worker}.jsonl`))
  for (const name of ['x.jsonl', `${worker}.json`, `..${worker}.jsonl`, `${newId()}.jsonl.zst`]) {
    writeFileSync(join(folder.path, name), line(worker, 2))
  }
  const old = join(folder.path, `${newId()}.jsonl`)
  writeFileSync(old, line(worker, 3))
  utimesSync(old, SINCE.getTime() / 1_000 - 60, SINCE.getTime() / 1_000 - 60)
  assert.deepEqual((await numbers(folder.path)).found, [])
  assert.deepEqual((await numbers(join(folder.path, 'nothing'))).found, [])
})

test('an invalid cursor is ignored', async () => {
  using folder = temporaryFolder()
  const worker = newId()
  writeFileSync(join(folder.path, `${worker}.jsonl`), line(worker, 1))
  for (const after of ['', 'x', '2026', '9'.repeat(200)]) {
    assert.deepEqual((await numbers(folder.path, after)).found, [1])
  }
})
