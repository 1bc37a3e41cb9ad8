import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'

const MANAGED_PROCESS_MODULE = new URL('./managed-process.ts', import.meta.url).href
/** Loads the code before it drops root's rights: the clone may lie where only root may enter. */
const START = `
  import { ManagedProcess } from '${MANAGED_PROCESS_MODULE}'
  const [path, program, folder] = process.argv.slice(1)
  if (process.getuid() === 0) {
    process.setgroups([])
    process.setgid(65534)
    process.setuid(65534)
  }
  const spec = {
    id: 'test', command: [program], cwd: '/', env: { PATH: path }, processTag: 'test',
    outputDir: folder, logPath: folder + '/output.log', maxLogBytes: 1000, secrets: [],
  }
  new ManagedProcess(spec, { send: (message) => console.log(JSON.stringify(message)) }).start()
`

/** Starts a program as an ordinary user and returns the system's code for its refusal. */
function startError(path: string, program: string, folder: string): string {
  const args = ['--input-type=module', '-e', START, path, program, folder]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  const message = JSON.parse(stdout || '{}') as { type?: string; code?: string }
  assert.equal(message.type, 'start-failed', stdout + stderr)
  return message.code!
}

test('as an ordinary user, a folder of the PATH that may not be entered is skipped, as shells do', () => {
  using folder = temporaryFolder()
  const closed = join(folder.path, 'closed')
  mkdirSync(closed, { mode: 0o600 })
  const from = (path: string, program: string): string => startError(path, program, folder.path)
  assert.equal(from(`${closed}:/usr/bin:/bin`, 'no-such-program'), 'ENOENT')
  assert.equal(from(closed, 'no-such-program'), 'ENOENT')
  // A file that is no program, and a path that was given as a whole, are still refused as what they are.
  assert.equal(from(`${closed}:/etc`, 'passwd'), 'EACCES')
  assert.equal(from('/usr/bin', join(closed, 'program')), 'EACCES')
  assert.equal(from('/', 'etc'), 'ENOENT', 'a folder is no program')
})
