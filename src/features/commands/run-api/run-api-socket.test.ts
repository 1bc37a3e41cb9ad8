import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { assertRejected, RunApiTestContext } from '../../../testing/run-api-test-context.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'
import { RunApi } from './run-api.ts'

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)

test('S28 on a Unix socket: mode 0600 in a folder of mode 0700, and gone when it stops', async () => {
  using folder = temporaryFolder()
  const socketFolder = join(folder.path, 'deep', 'api')
  await using ctx = await RunApiTestContext.create(sqliteEngine, { socketFolder })
  const command = await ctx.begin()
  const { socket = '', url } = command.admission

  assert.equal(dirname(socket), socketFolder)
  assert.deepEqual([mode(socket), mode(socketFolder)], ['600', '700'])
  assert.equal(url, `http://localhost/${command.handle.id}`)
  assert.deepEqual((await command.post('/checkpoint', { page: 1 })).body, { seq: 1 })
  assert.equal((await command.get('/', { headers: { host: 'anything' } })).body.page, 1)
  assertRejected(await command.get('', { token: null }), 401, 'UNAUTHORIZED')

  await ctx.api.stop()
  assert.deepEqual(readdirSync(socketFolder), [])
})

/** Says where the process of this module listens, and then is killed -9 in the middle of it. */
const LISTENER = `
  const { RunApi } = await import(process.argv[1])
  const api = new RunApi({ socketFolder: process.argv[2] })
  await api.start()
  console.log('up')
`

test('a socket that a killed process left behind goes with the next start; one that is listened on stays', async () => {
  using folder = temporaryFolder()
  const module = join(import.meta.dirname, 'run-api.ts')
  const args = ['--input-type=module', '-e', LISTENER, module, folder.path]
  const other = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(other.stdout, 'data')
  const [left = ''] = readdirSync(folder.path)
  other.kill('SIGKILL')
  await once(other, 'exit')
  const aMomentAgo = new Date(Date.now() - 5_000)
  // Of another name, or of another kernel: on a shared disk another host may listen there.
  const foreign = ['mine.sock', `00000000${left.slice(8)}`]
  for (const name of foreign) linkSync(join(folder.path, left), join(folder.path, name))

  // So young that its process might be about to listen.
  utimesSync(join(folder.path, left), new Date(), new Date())
  await using first = await startListener(folder.path)
  assert.ok(existsSync(join(folder.path, left)))

  const kept = first.name
  for (const name of [left, kept]) utimesSync(join(folder.path, name), aMomentAgo, aMomentAgo)
  await using second = await startListener(folder.path)

  assert.deepEqual(readdirSync(folder.path).sort(), [kept, second.name, ...foreign].sort())
})

/** An API that listens there, by the name of its socket. */
async function startListener(socketFolder: string): Promise<AsyncDisposable & { name: string }> {
  const before = new Set(readdirSync(socketFolder))
  const api = new RunApi({ socketFolder })
  await Promise.all([api.start(), api.start()])
  const [name = ''] = readdirSync(socketFolder).filter((entry) => !before.has(entry))
  assert.ok(lstatSync(join(socketFolder, name)).isSocket())
  return { name, [Symbol.asyncDispose]: () => api.stop() }
}

test('where the path would be too long, a private folder of its own holds the socket, and goes when it stops', async () => {
  using folder = temporaryFolder()
  const socketFolder = join(folder.path, 'x'.repeat(100), 'api')
  await using ctx = await RunApiTestContext.create(sqliteEngine, { socketFolder })
  const command = await ctx.begin()
  const { socket = '' } = command.admission

  assert.equal(dirname(dirname(socket)), tmpdir())
  assert.deepEqual([mode(socket), mode(dirname(socket))], ['600', '700'])
  assert.equal((await command.post('/heartbeat')).status, 200)
  assert.equal(existsSync(socketFolder), false)

  await ctx.api.stop()
  assert.equal(existsSync(dirname(socket)), false)
})

/** Calls the API over its socket, and shows where that is. */
const CALLER = `
  const { UNSTUCK_URL: url, UNSTUCK_TOKEN: token, UNSTUCK_SOCKET: socketPath } = process.env
  const headers = { authorization: 'Bearer ' + token }
  const call = require('http').request(url, { socketPath, headers }, (answer) => {
    console.log(answer.statusCode, socketPath)
    answer.resume()
  })
  call.end()
`

test('unstuck run --socket works however long the path of the data folder is, and leaves nothing behind', async () => {
  using folder = temporaryFolder()
  const cwd = join(folder.path, 'a-project-with-a-long-name', 'x'.repeat(70))
  mkdirSync(cwd, { recursive: true })
  const db = `sqlite:${join(cwd, 'unstuck.db')}`
  const command = [process.execPath, '-e', CALLER]
  const said = await unstuck(['run', 'shop', '--socket', '--db', db, '--', ...command], { cwd })
  assert.equal(said.code, 0, said.stderr)
  const [, socket = ''] = /200 (\S+\.sock)/.exec(said.stdout) ?? []
  assert.match(basename(dirname(socket)), /^unstuck-api-/, said.stdout)
  assert.equal(existsSync(dirname(socket)), false)
})

test('a place where a socket would not be private, or cannot be, is refused with the reason', async () => {
  using folder = temporaryFolder()
  const open = join(folder.path, 'open')
  mkdirSync(open)
  chmodSync(open, 0o755)
  const file = join(folder.path, 'file')
  writeFileSync(file, '')
  const wrong: [string, RegExp][] = [
    [open, /Others can enter .*open.*`chmod 700 .*open`, or leave out --socket/],
    [join(file, 'api'), /The folder of the socket cannot be made/],
  ]
  for (const [socketFolder, told] of wrong) {
    await assert.rejects(new RunApi({ socketFolder }).start(), { code: 'E_USAGE', message: told })
  }
  assert.equal(mode(open), '755')
})

test('if the path of the temporary folder is too long too, the error names the variable to set', async () => {
  using folder = temporaryFolder()
  const before = process.env['TMPDIR']
  const long = join(folder.path, 'x'.repeat(100))
  mkdirSync(long)
  process.env['TMPDIR'] = long
  try {
    const api = new RunApi({ socketFolder: join(long, 'api') })
    await assert.rejects(api.start(), /at most 103 bytes.*Set TMPDIR to .* shorter path/)
    await api.stop()
    assert.deepEqual(readdirSync(long), [])
  } finally {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  }
})
