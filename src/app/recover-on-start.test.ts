import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../testing/sqlite-engine.ts'
import { cliCommand } from '../testing/unstuck-cli.ts'

const SCRIPT = `
  import { recoverOnStart } from '${new URL('../index.ts', import.meta.url).href}'
  const table = (name, more) => ({
    [name]: { table: name, columns: { id: 'id', status: 'status', heartbeatAt: 'beat', owner: 'owner' },
              statuses: { active: 'running', failed: 'failed' }, ...more },
  })
  const db = 'sqlite:own.db'
  const fails = () => { throw new Error('away\\n\\u001b[2J') }
  await recoverOnStart({ db, dryRun: true, config: { adopted: table('shown', { alive: fails }) } })
  const late = () => new Promise((resolve) => setTimeout(resolve, 300, false))
  const { error } = await recoverOnStart({ db, timeout: '100ms', config: { adopted: table('late', { alive: late }) } })
  console.log(JSON.stringify({ error }))
`

test('each log entry is one line, whatever the data; after its timeout it changes no run', async () => {
  using folder = temporaryFolder()
  const users = new DatabaseSync(join(folder.path, 'own.db'))
  const insert = (table: string, owner: string): void => {
    users.exec(`CREATE TABLE ${table} (id TEXT, status TEXT, beat TEXT, owner TEXT)`)
    const beat = new Date().toISOString()
    users.prepare(`INSERT INTO ${table} VALUES ('1', 'running', ?, ?)`).run(beat, owner)
  }
  insert('shown', 'h\u001b]52;c;aGk=\u0007\n[unstuck] no run is active')
  insert('late', 'worker-1')
  const { env } = cliCommand([])
  const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT], {
    cwd: folder.path,
    env,
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  // It ends by itself, when all that was under way has come to its end.
  assert.deepEqual(await once(child, 'close'), [0, null], said)

  // Each look asks alive() once more.
  const lines = [...new Set(said.trimEnd().split('\n'))]
  assert.equal(lines.length, 4, said)
  assert.match(lines[0]!, /^\[unstuck\] alive\(\) of row 1 of shown: away \\x1b\[2J$/)
  assert.match(
    lines[1]!,
    /^\[unstuck\] run shown:1 of shown is running: .*\[unstuck\] no run is active/,
  )
  assert.doesNotMatch(said.replaceAll('\n', ''), /\p{Cc}/u)
  assert.match(lines[3]!, /"message":"it took longer than 100 ms/)
  assert.equal(users.prepare('SELECT status FROM late').get()!['status'], 'running')
  users.close()
})
