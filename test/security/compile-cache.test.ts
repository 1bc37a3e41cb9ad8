import assert from 'node:assert/strict'
import { existsSync, globSync, lchownSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { unstuckProcess as unstuck } from '../../src/testing/unstuck-cli.ts'

/** The header of a cache entry: magic, size of the source, size of the entry, and a checksum of each. */
const HEADER_BYTES = 20
const ENTRY_SIZE_AT = 8
const ENTRY_CHECKSUM_AT = 16
/** Where programs that use Node's default keep the cache: in any user's reach. */
const SHARED_NAME = 'node-compile-cache'

test('S35 a compile cache that another user planted in the temporary folder is not run', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  const cache = join(cwd, SHARED_NAME)
  const marker = join(cwd, 'planted-code-ran')
  await unstuck(['--version'], { cwd, env: { NODE_COMPILE_CACHE: cache } })
  assert.ok(plant(cache, `process.getBuiltinModule('node:fs').writeFileSync('${marker}', '');`) > 0)

  const env = { NODE_COMPILE_CACHE: undefined, TMPDIR: cwd, HOME: cwd, XDG_CACHE_HOME: cwd }
  const { code, stderr } = await unstuck(['--version'], { cwd, env })
  assert.equal(code, 0, stderr)
  assert.ok(!existsSync(marker), 'code of another user was run')
  assert.deepEqual(readdirSync(cwd), [SHARED_NAME])

  // The planted entries are good ones: named by the user, the same folder is used.
  await unstuck(['--version'], { cwd, env: { NODE_COMPILE_CACHE: cache } })
  assert.ok(existsSync(marker))
})

test('S35 a command gets no compile cache of Unstuck, and keeps the one that its user set', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  for (const own of [undefined, join(cwd, 'own')]) {
    const print = 'console.log("cache:", process.env.NODE_COMPILE_CACHE)'
    const args = ['run', 'feed', '--', process.execPath, '-e', print]
    const env = { NODE_COMPILE_CACHE: own }
    const { code, stdout, stderr } = await unstuck(args, { cwd, env })
    assert.equal(code, 0, stderr)
    assert.ok(stdout.includes(`cache: ${own}\n`), stdout)
  }
})

/** Puts code in front of every module's text in a cache, as its own checksums want it. Returns how many there are. */
function plant(cache: string, code: string): number {
  let planted = 0
  for (const path of globSync(`${cache}/**`, { withFileTypes: true })) {
    const file = join(path.parentPath, path.name)
    if (path.isFile()) {
      const entry = readFileSync(file)
      const text = entry.subarray(HEADER_BYTES).toString('utf8')
      // Compiled code begins with a mark of V8's; TypeScript is kept as the JavaScript it became.
      if (/^(import|export|\/\*\*|const) /.test(text)) {
        const body = Buffer.from(code + text)
        const header = Buffer.from(entry.subarray(0, HEADER_BYTES))
        header.writeUInt32LE(body.length, ENTRY_SIZE_AT)
        header.writeUInt32LE(crc32(body), ENTRY_CHECKSUM_AT)
        writeFileSync(file, Buffer.concat([header, body]))
        planted++
      }
    }
    if (process.getuid?.() === 0) lchownSync(file, 65_534, 65_534)
  }
  return planted
}
