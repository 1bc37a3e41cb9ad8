import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { unstuck, type CliResult } from '../../../testing/unstuck-cli.ts'

const PASSWORD = 'hunter2'
const CONFIG = {
  db: `postgres://me:${PASSWORD}@127.0.0.1:1/x`,
  preset: 'production',
  policies: {
    shop: { maxSilence: '2h', abandonAfter: '6h', groups: { CA: { maxCrashes: 5 } } },
    portal: { lease: '45s' },
  },
}

const folder = temporaryFolder()
const empty = temporaryFolder()
writeFileSync(join(folder.path, 'unstuck.config.ts'), `export default ${JSON.stringify(CONFIG)}`)
after(() => {
  folder[Symbol.dispose]()
  empty[Symbol.dispose]()
})

async function show(args: string[], cwd = folder.path, columns = ''): Promise<CliResult> {
  const said = await unstuck(['config', 'show', ...args], { cwd, env: { COLUMNS: columns } })
  assert.doesNotMatch(said.stdout + said.stderr, new RegExp(PASSWORD))
  return said
}

async function settings(args: string[]): Promise<any> {
  return JSON.parse((await show([...args, '--json'])).stdout)
}

/** `name value origin`, with its group. */
function lines(policy: any): string[] {
  return policy.settings.map(({ name, group, value, origin }: any) =>
    [name, value, origin, ...(group === null ? [] : [group])].join(' '),
  )
}

describe('config show', { concurrency: 2 }, () => {
  test('prints the origin of each setting, and never a password', async () => {
    const data = await settings([])
    assert.equal(Object.keys(data).join(' '), 'path db preset policies url alerts channels')
    assert.equal(data.path, join(folder.path, 'unstuck.config.ts'))
    assert.deepEqual(data.db, { address: 'postgres://***@127.0.0.1:1/x', origin: 'config' })
    assert.equal(data.preset, 'production')
    const [all, shop, portal] = data.policies
    assert.deepEqual([all.source, shop.source, portal.source], [null, 'shop', 'portal'])
    assert.equal(all.settings.length, 16)
    assert.ok(lines(all).includes('maxSilence 15m default'))
    assert.ok(lines(all).includes('staleAfter 30m preset'))
    assert.deepEqual(lines(shop), [
      'maxSilence 2h config',
      'abandonAfter 6h config',
      'staleAfter 30m preset',
      'onStale fail preset',
      'maxCrashes 5 config CA',
    ])
    assert.deepEqual(lines(portal)[0], 'lease 45s config')
  })

  test('--defaults shows what is at its default too; one source is shown whole', async () => {
    const { policies } = await settings(['--defaults'])
    assert.deepEqual(
      policies.map(({ settings }: any) => settings.length),
      [16, 17, 16],
    )
    const one = await settings(['shop'])
    assert.deepEqual(
      one.policies.map(({ source, settings }: any) => [source, settings.length]),
      [['shop', 17]],
    )
    assert.equal((await settings(['unheard-of'])).policies[0].settings.length, 16)
  })

  test('the origin of the database address is shown, and warnings go to stderr', async () => {
    const { stdout, stderr, code } = await show(['shop', '--db', 'sqlite:x.db'])
    assert.equal(code, 0)
    assert.match(stdout, /^Database: sqlite:.*\/x\.db, from --db$/m)
    assert.match(stdout, /^maxCrashes +5 +config, group CA$/m)
    assert.match(stdout, /^staleAfter +30m +preset production$/m)
    assert.match(stderr, /^Warning: policies\["shop"\]\.abandonAfter is below 12 h/)
    const none = await show([], empty.path)
    assert.match(none.stdout, /^No config file: defaults count\.\nDatabase: .*, from default$/m)
  })

  test('fits 40 columns', async () => {
    const { stdout } = await show(['shop'], folder.path, '40')
    assert.match(stdout, /^staleAfter +30m +preset production$/m)
    assert.match(stdout, /^maxCrashes +5 +config, group CA$/m)
  })

  test('a wrong config names all its mistakes at once, with 2', async () => {
    using wrong = temporaryFolder()
    const config = {
      db: `mysql://me:${PASSWORD}@h/x`,
      presett: 'production',
      policies: { shop: { maxsilence: '2h', groups: { CA: { lease: '5s' } } } },
    }
    const path = join(wrong.path, 'unstuck.config.ts')
    writeFileSync(path, `export default ${JSON.stringify(config)}`)
    const { code, stdout, stderr } = await show([], wrong.path)
    assert.deepEqual([code, stdout], [2, ''])
    for (const mistake of [
      /^- there is no "presett"; did you mean preset\?$/m,
      /^- db must be sqlite:PATH or postgres/m,
      /^- policies\["shop"\] has no maxsilence; did you mean maxSilence\?$/m,
      /^- policies\["shop"\]\.groups\["CA"\] has no lease of its own/m,
    ]) {
      assert.match(stderr, mistake)
    }
  })
})
