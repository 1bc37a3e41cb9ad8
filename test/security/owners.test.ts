import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { openStore } from '../../src/core/store/open.ts'
import { addToken, readTokens, tokensPath } from '../../src/app/tokens.ts'
import { runDoctor } from '../../src/testing/doctor-report.ts'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { cliCommand, unstuck } from '../../src/testing/unstuck-cli.ts'

/** Files of another user can be made by root only. */
const ATTACKER = 65_534
const VICTIM = 1_234
const asRoot = {
  skip: process.getuid?.() === 0 ? false : 'only root can make files of another user',
}

/** A folder for all users, as /tmp is, with a folder of this user's own in it. */
function sharedFolder(): Disposable & { shared: string; own: string } {
  const folder = temporaryFolder()
  const shared = join(folder.path, 'shared')
  const own = join(shared, 'own')
  chmodSync(folder.path, 0o755)
  mkdirSync(own, { recursive: true })
  chmodSync(shared, 0o1777)
  chmodSync(own, 0o755)
  return { shared, own, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

/** A config that leaves a mark when it is run. */
function writeConfig(folder: string): { path: string; marker: string } {
  const [path, marker] = [join(folder, 'unstuck.config.mjs'), join(folder, 'config-was-run')]
  writeFileSync(
    path,
    `import { writeFileSync } from 'node:fs'
    writeFileSync(${JSON.stringify(marker)}, '')
    export default {}`,
  )
  return { path, marker }
}

/** Every command that reads a config, or takes its folder for that of the database. */
const READ_COMMANDS = [['status'], ['config', 'show'], ['runs', '--db', 'sqlite:x.db'], ['init']]

async function assertRefused(cwd: string, because: RegExp, env = {}): Promise<void> {
  for (const args of READ_COMMANDS) {
    const { code, stderr } = await unstuck(args, { cwd, env })
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, because)
    assert.match(stderr, /is not used as config/)
  }
}

test(
  'S35 a config that another user planted in a folder above is refused, not run',
  asRoot,
  async () => {
    using place = sharedFolder()
    const { path, marker } = writeConfig(place.shared)
    chownSync(path, ATTACKER, ATTACKER)
    await assertRefused(place.own, /unstuck\.config\.mjs belongs to another user \(uid 65534\)/)

    // Nor one of one's own, behind a link that another user made.
    const other = writeConfig(place.own)
    const below = join(place.own, 'below')
    mkdirSync(below)
    symlinkSync(other.path, join(below, 'unstuck.config.mjs'))
    lchownSync(join(below, 'unstuck.config.mjs'), ATTACKER, ATTACKER)
    await assertRefused(below, /belongs to another user/)
    assert.ok(!existsSync(marker) && !existsSync(other.marker))
  },
)

test(
  'S35 a config in a folder of another user is refused, however it got there',
  asRoot,
  async () => {
    using place = sharedFolder()
    const { path, marker } = writeConfig(place.own)
    chownSync(place.own, ATTACKER, ATTACKER)
    await assertRefused(place.own, /own belongs to another user/)
    assert.ok(!existsSync(marker))

    // The user may vouch for a folder, or be root on behalf of its owner.
    for (const env of [
      { UNSTUCK_TRUSTED_FOLDERS: place.own },
      { UNSTUCK_TRUSTED_FOLDERS: `/nowhere:${dirname(path)}/` },
      { SUDO_UID: String(ATTACKER) },
    ]) {
      const { code, stderr } = await unstuck(['config', 'show'], { cwd: place.own, env })
      assert.equal(code, 0, stderr)
    }
    assert.ok(existsSync(marker))
    const beside = { UNSTUCK_TRUSTED_FOLDERS: `${place.own}-of-another` }
    await assertRefused(place.own, /belongs to another user/, beside)
  },
)

test('S35 a config that others can change, or replace, is refused', async () => {
  using place = sharedFolder()
  const { path, marker } = writeConfig(place.own)
  chmodSync(path, 0o666)
  await assertRefused(place.own, /can be changed by other users \(mode 0666\)/)
  chmodSync(path, 0o644)
  chmodSync(place.own, 0o777)
  await assertRefused(place.own, /own can be changed by other users \(mode 0777\)/)
  chmodSync(place.own, 0o755)
  chmodSync(place.shared, 0o777)
  await assertRefused(place.own, /shared can be changed by other users/)
  assert.ok(!existsSync(marker))

  chmodSync(place.shared, 0o1777)
  assert.equal((await unstuck(['config', 'show'], { cwd: place.own })).code, 0)
  assert.ok(existsSync(marker))
})

/** Runs the command line as an ordinary user. Its exit code is null where that user may not enter this clone. */
function asVictim(args: readonly string[], cwd: string): number | null {
  const { command, env } = cliCommand(args)
  return spawnSync(command[0]!, command.slice(1), { cwd, env, uid: VICTIM }).status
}

test('S35 a user goes by a config of their own and of root, and by no other', asRoot, async (t) => {
  using place = sharedFolder()
  if (asVictim(['--version'], place.own) !== 0) return t.skip('only root may enter this clone')
  const path = join(place.own, 'unstuck.config.mjs')
  writeFileSync(path, 'export default {}')
  chmodSync(path, 0o644)
  const codes = [0, VICTIM, ATTACKER].map((owner) => {
    chownSync(path, owner, owner)
    return asVictim(['config', 'show'], place.own)
  })
  assert.deepEqual(codes, [0, 0, 2])
})

test('S35 a token file that another user created, or can replace, denies access', async () => {
  using place = sharedFolder()
  const { own } = place
  addToken(tokensPath(own), 'maria', 'admin')
  assert.equal(readTokens(tokensPath(own)).length, 1)
  const refused = async (because: RegExp): Promise<void> => {
    assert.throws(() => readTokens(tokensPath(own)), because)
    for (const command of [
      ['tokens', 'list'],
      ['serve', '--port', '0'],
    ]) {
      const args = [...command, '--db', `sqlite:${join(own, 'x.db')}`]
      const { code, stderr } = await unstuck(args, { cwd: place.shared })
      assert.equal(code, 2, `${command.join(' ')}: ${stderr}`)
      assert.match(stderr, because)
    }
  }
  chmodSync(own, 0o777)
  await refused(/own can be changed by other users/)
  chmodSync(own, 0o700)
  if (process.getuid?.() !== 0) return
  chownSync(tokensPath(own), ATTACKER, ATTACKER)
  await refused(/tokens\.json belongs to another user/)
})

test(
  'S35 a data folder that another user made is not used unless it is named',
  asRoot,
  async () => {
    using place = sharedFolder()
    const data = join(place.own, '.unstuck')
    const address = `sqlite:${join(data, 'unstuck.db')}`
    await (await openStore(address)).close()
    for (const name of ['.', ...readdirSync(data)]) chownSync(join(data, name), ATTACKER, ATTACKER)
    const cwd = place.own
    for (const args of [['status'], ['enqueue', 'feed'], ['run', 'feed', '--', 'true']]) {
      const { code, stderr } = await unstuck(args, { cwd })
      assert.equal(code, 2, stderr)
      assert.match(stderr, /\.unstuck is not used as data folder: .*belongs to another user/)
    }
    const server = { UNSTUCK_DB: 'postgres://nobody@127.0.0.1:1/x' }
    const { code, stderr } = await unstuck(['tokens', 'list'], { cwd, env: server })
    assert.equal(code, 2)
    assert.match(stderr, /\.unstuck is not used as data folder/)

    // Root may look at the database of a service that runs as another user: it has to be named.
    const named = await unstuck(['status', '--db', address], { cwd })
    assert.equal(named.code, 0, named.stderr)
  },
)

test(
  'S35 beside a database in a shared folder no file of another user is used',
  asRoot,
  async () => {
    const PLANTED = ['x.db', 'x.db-wal', 'x.db-workers', 'runs', 'journal']
    for (const name of PLANTED) {
      using place = sharedFolder()
      const planted = join(place.shared, name)
      if (name.startsWith('x.db') && name !== 'x.db-workers') writeFileSync(planted, '')
      else mkdirSync(planted)
      chownSync(planted, ATTACKER, ATTACKER)
      const address = `sqlite:${join(place.shared, 'x.db')}`
      const command = [process.execPath, '-e', '']
      const args = ['run', 'feed', '--db', address, '--', ...command]
      const { code, stderr } = await unstuck(args, { cwd: place.own })
      // A journal is only ever written, and its loss stops nothing.
      if (name !== 'journal') {
        assert.equal(code, 2, `${name}: ${stderr}`)
        assert.match(stderr, /is not used as .* belongs to another user/)
      } else assert.equal(code, 0, stderr)
      if (name === 'journal' || name === 'x.db-workers') assert.deepEqual(readdirSync(planted), [])
    }
  },
)

test('S35 S34 doctor --security names what another user could have written', asRoot, async () => {
  using place = sharedFolder()
  const data = join(place.own, '.unstuck')
  await (await openStore(`sqlite:${join(data, 'unstuck.db')}`)).close()
  addToken(tokensPath(data), 'maria', 'admin')
  const [cache, locks] = [join(place.own, 'cache'), join(data, 'unstuck.db-workers')]
  for (const folder of [cache, locks]) mkdirSync(folder, { recursive: true })
  for (const path of [cache, locks, tokensPath(data)]) chownSync(path, ATTACKER, ATTACKER)
  const ask = () =>
    runDoctor(['--security'], { cwd: place.own, env: { NODE_COMPILE_CACHE: cache } })
  const foreign = /belongs to another user \(uid 65534\)/

  const report = await ask()
  for (const name of ['owners', 'compile-cache', 'tokens']) {
    const { result, found, details } = report.getCheck(name)
    assert.equal(result, 'problem', name)
    assert.match([found, ...details].join('\n'), foreign)
  }
  const named = report.getCheck('owners').details.join('\n')
  for (const path of [locks, tokensPath(data)]) assert.ok(named.includes(path), named)

  const { path, marker } = writeConfig(place.own)
  chownSync(path, ATTACKER, ATTACKER)
  const { result, found } = (await ask()).getCheck('config-file')
  assert.equal(result, 'problem')
  assert.match(found, foreign)
  assert.ok(!existsSync(marker))
})
