import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { compressJournal } from './compress.ts'

const TEXT = '{"type":"heartbeat"}\n'.repeat(1_000)

test('the compressed journal holds every byte of the original, which is gone', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'w.jsonl')
  writeFileSync(file, TEXT)
  const { path, before, after } = await compressJournal(file)
  assert.equal(zstdDecompressSync(readFileSync(path)).toString(), TEXT)
  assert.deepEqual(readdirSync(folder.path), ['w.jsonl.zst'])
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.ok(before === TEXT.length && after < before)
})

test('an earlier attempt that was killed before its last step is finished', async () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'w.jsonl')
  writeFileSync(file, TEXT)
  writeFileSync(`${file}.zst`, zstdCompressSync(TEXT))
  await compressJournal(file)
  assert.equal(existsSync(file), false)
})

for (const [what, content] of [
  ['other content', zstdCompressSync('something else')],
  ['a damaged copy', zstdCompressSync(TEXT).subarray(0, 20)],
] as const) {
  test(`where ${what} stands in the way, nothing is touched`, async () => {
    using folder = temporaryFolder()
    const file = join(folder.path, 'w.jsonl')
    writeFileSync(file, TEXT)
    writeFileSync(`${file}.zst`, content)
    await assert.rejects(compressJournal(file), { code: 'E_USAGE' })
    assert.equal(readFileSync(file, 'utf8'), TEXT)
    assert.deepEqual(readFileSync(`${file}.zst`), Buffer.from(content))
  })
}
