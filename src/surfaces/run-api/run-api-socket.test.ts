import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { assertRefused, RunApiStage } from '../../testing/run-api-caller.ts'
import { sqliteEngine, temporaryFolder } from '../../testing/sqlite-engine.ts'
import { RunApi } from './run-api.ts'

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)

test('S28 on a Unix socket: mode 0600 in a folder of mode 0700, and gone when it stops', async () => {
  using folder = temporaryFolder()
  const socket = join(folder.path, 'deep', 'run', 'api.sock')
  await using stage = await RunApiStage.set(sqliteEngine, { socket })
  const command = await stage.begin()

  assert.deepEqual([mode(socket), mode(join(folder.path, 'deep', 'run'))], ['600', '700'])
  assert.equal(command.admission.socket, socket)
  assert.equal(command.admission.url, `http://localhost/${command.handle.id}`)
  assert.deepEqual((await command.post('/checkpoint', { page: 1 })).body, { seq: 1 })
  assert.equal((await command.get('/', { headers: { host: 'anything' } })).body.page, 1)
  assertRefused(await command.get('', { token: null }), 401, 'UNAUTHORIZED')

  await stage.api.stop()
  assert.equal(existsSync(socket), false)
})

test('a socket that a killed process left behind is replaced; one that is listened on is not', async () => {
  using folder = temporaryFolder()
  const socket = join(folder.path, 'api.sock')
  const listen = `require('net').createServer().listen(process.argv[1], () => console.log('up'))`
  const other = spawn(process.execPath, ['-e', listen, socket], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(other.stdout, 'data')

  const refused = new RunApi({ socket })
  await assert.rejects(refused.start(), /Another process listens on .*api\.sock/)
  await refused.stop()
  other.kill('SIGKILL')
  await once(other, 'exit')
  assert.ok(existsSync(socket))

  const api = new RunApi({ socket })
  await Promise.all([api.start(), api.start()])
  assert.equal(mode(socket), '600')
  await api.stop()
})

test('a place where a socket would not be private, or cannot be, is refused with the reason', async () => {
  using folder = temporaryFolder()
  const open = join(folder.path, 'open')
  mkdirSync(open)
  chmodSync(open, 0o755)
  const file = join(folder.path, 'file')
  writeFileSync(file, '')
  const wrong: [string, RegExp][] = [
    [join(open, 'api.sock'), /Others can enter .*open.*chmod 700/],
    [file, /is there and is not a socket/],
    [join(file, 'api.sock'), /The folder of the socket cannot be made/],
    [join(folder.path, 'x'.repeat(100)), /longer than 103 bytes/],
  ]
  for (const [socket, told] of wrong) {
    await assert.rejects(new RunApi({ socket }).start(), { code: 'E_USAGE', message: told })
  }
  assert.equal(mode(open), '755')
})
