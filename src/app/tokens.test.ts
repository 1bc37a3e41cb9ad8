import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../testing/sqlite-engine.ts'
import { unstuck } from '../testing/unstuck-cli.ts'
import { TokenFile, addToken, readTokens, removeToken } from './tokens.ts'

const noLog = (): void => {}

test('of a token only its hash is kept, in a file for this user alone', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'deeper', 'tokens.json')
  const secret = addToken(path, 'maria', 'operator')
  assert.equal(Buffer.from(secret, 'base64url').length, 32)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const kept = readFileSync(path, 'utf8')
  assert.ok(!kept.includes(secret))
  assert.ok(kept.includes(hash('sha256', secret)))
  assert.ok(!existsSync(`${path}.new`))
  const [token] = readTokens(path)
  assert.deepEqual([token!.name, token!.role], ['maria', 'operator'])
  assert.throws(() => addToken(path, 'maria', 'admin'), /already/)
  for (const name of [
    '',
    'local',
    'a b',
    '../x',
    'x'.repeat(65),
    'ä',
    '<b>',
    'admin-from-environment',
  ])
    assert.throws(() => addToken(path, name, 'viewer'), /cannot be the name/, name)
})

test('tokens look like chance: no two alike, every bit set half of the time', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'tokens.json')
  const bits = Array.from({ length: 256 }, () => 0)
  const seen = new Set<string>()
  for (let n = 0; n < 200; n++) {
    const secret = addToken(path, 'one', 'viewer')
    removeToken(path, 'one')
    seen.add(secret)
    const bytes = Buffer.from(secret, 'base64url')
    for (let bit = 0; bit < 256; bit++) bits[bit]! += (bytes[bit >> 3]! >> (bit & 7)) & 1
  }
  assert.equal(seen.size, 200)
  // Six standard deviations: once in a million test runs for one of the bits.
  for (const [bit, ones] of bits.entries())
    assert.ok(ones > 57 && ones < 143, `bit ${bit}: ${ones}`)
})

test('the token file is re-read: added, removed, corrupted', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'tokens.json')
  const said: string[] = []
  const book = new TokenFile(path, undefined, (line) => said.push(line))
  assert.ok(book.isEmpty())
  const maria = addToken(path, 'maria', 'viewer')
  const ben = addToken(path, 'ben', 'admin')
  assert.deepEqual([book.find(maria)?.name, book.find(ben)?.role], ['maria', 'admin'])
  assert.equal(book.find(`${maria}x`), null)
  assert.ok(removeToken(path, 'maria') && !removeToken(path, 'maria'))
  assert.equal(book.find(maria), null)
  chmodSync(path, 0o644)
  assert.deepEqual([book.find(ben), book.isEmpty()], [null, false])
  assert.match(said.join(), /Others can read/)
  chmodSync(path, 0o600)
  assert.equal(book.find(ben)?.name, 'ben')
  writeFileSync(path, '{"tokens": [{"name": "eve", "role": "root"}]}')
  assert.deepEqual([book.find(ben), book.isEmpty()], [null, false])
})

test('every token is compared in constant time', () => {
  const code = readFileSync(join(import.meta.dirname, 'tokens.ts'), 'utf8')
  assert.match(code, /timingSafeEqual\(given, Buffer\.from\(one\.hash, 'hex'\)\)/)
})

test('the token of the environment is an administrator, and must be long', () => {
  const secret = 'x'.repeat(32)
  const book = new TokenFile(null, secret, noLog)
  assert.deepEqual([book.find(secret)?.role, book.isEmpty()], ['admin', false])
  assert.throws(() => new TokenFile(null, 'short', noLog), /UNSTUCK_ADMIN_TOKEN is shorter/)
  assert.ok(new TokenFile(null, '', noLog).isEmpty())
})

test('the command line makes, lists and takes away tokens, and never shows one again', async () => {
  using folder = temporaryFolder()
  const at = { cwd: folder.path }
  const db = ['--db', 'sqlite:data/unstuck.db']
  const made = await unstuck(['tokens', 'add', 'maria', '--role', 'operator', '--json', ...db], at)
  const { token } = JSON.parse(made.stdout) as { token: string }
  assert.equal(statSync(join(folder.path, 'data', 'tokens.json')).mode & 0o777, 0o600)
  const shown = await unstuck(['tokens', 'add', 'ben', ...db], at)
  assert.match(shown.stdout, /^[\w-]{43}\nThe token of ben \(viewer\)/)
  const listed = await unstuck(['tokens', 'list', '--json', ...db], at)
  assert.deepEqual(
    JSON.parse(listed.stdout).items.map(({ name, role }: any) => [name, role]),
    [
      ['maria', 'operator'],
      ['ben', 'viewer'],
    ],
  )
  assert.ok(!listed.stdout.includes(token))
  assert.equal((await unstuck(['tokens', 'remove', 'maria', ...db], at)).code, 0)
  const again = await unstuck(['tokens', 'remove', 'maria', ...db], at)
  assert.deepEqual([again.code, again.stderr.includes('E_NOT_FOUND')], [2, true])
})
