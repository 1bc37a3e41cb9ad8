import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DEFAULT_POLICY, makePolicy, type Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { temporaryFolder } from '../testing/sqlite-engine.ts'
import { addressMistake, findAddress } from './address.ts'
import { configFolder } from '../runtime/config-file.ts'
import { defineConfig, loadSettings, makeSettings } from './config.ts'

const nothing = async (): Promise<undefined> => undefined

test('the config is found upwards, and its folder is where database paths count from', async () => {
  using folder = temporaryFolder()
  const deep = join(folder.path, 'a', 'b')
  mkdirSync(deep, { recursive: true })
  writeFileSync(
    join(folder.path, 'unstuck.config.ts'),
    `const db: string = 'sqlite:data/x.db'\nexport default { db, preset: 'production' }`,
  )
  const settings = await loadSettings(deep)
  assert.equal(settings.path, join(folder.path, 'unstuck.config.ts'))
  const found = await findAddress({
    flag: undefined,
    env: undefined,
    configured: async () => settings.db,
    folder: configFolder(deep),
  })
  assert.deepEqual(found, {
    address: `sqlite:${join(folder.path, 'data/x.db')}`,
    from: 'config',
  })
})

async function ask(flag?: string, env?: string, db?: string): Promise<string[]> {
  const question = { flag, env, configured: async () => db, folder: '/home' }
  const { address, from } = await findAddress(question)
  return [address, from]
}

test('the flag comes before the environment, the environment before the config', async () => {
  const [a, b, c] = ['sqlite:a.db', 'sqlite:/b.db', 'postgres://h/c']
  assert.deepEqual(await ask(a, b, c), ['sqlite:/home/a.db', '--db'])
  assert.deepEqual(await ask(undefined, b, c), [b, 'UNSTUCK_DB'])
  assert.deepEqual(await ask(undefined, '', c), [c, 'config'])
  assert.deepEqual(await ask(), ['sqlite:/home/.unstuck/unstuck.db', 'default'])
})

test('the config is not even read when the address is given', async () => {
  let read = 0
  const configured = async (): Promise<undefined> => void read++
  await findAddress({ flag: 'sqlite:a.db', env: undefined, configured, folder: '/' })
  assert.equal(read, 0)
})

test('a wrong address is explained without being repeated', async () => {
  for (const flag of ['mysql://me:hunter2@h/x', 'me:hunter2@h', 'postgres:hunter2', '']) {
    await assert.rejects(
      findAddress({ flag, env: undefined, configured: nothing, folder: '/' }),
      (error: Error) =>
        error.message.startsWith('--db must be sqlite:PATH') && !/hunter2/.test(error.message),
    )
  }
  assert.match(addressMistake('data/x.db') ?? '', /did you mean sqlite:data\/x\.db\?/)
  assert.match(addressMistake('sqlite://x.db') ?? '', /two slashes/)
})

test('all mistakes are named at once, with what was probably meant', () => {
  const config = {
    polices: {},
    db: 'mysql://me:hunter2@h/x',
    preset: 'prod',
    policies: { slow: { leese: '1m', heartbeat: 'often' }, fast: 3 },
  }
  assert.throws(
    () => makeSettings(config, '/x/unstuck.config.ts'),
    ({ message, exitCode }: Error & { exitCode: number }) => {
      assert.equal(exitCode, 2)
      assert.match(message, /"polices"; did you mean policies\?/)
      assert.match(message, /db must be sqlite:PATH/)
      assert.match(message, /preset must be one of development, staging, production/)
      assert.match(message, /policies\["slow"\] has no leese; did you mean lease\?/)
      assert.match(message, /policies\["slow"\]\.heartbeat must be a duration/)
      assert.match(message, /policies\["fast"\] must be an object/)
      assert.doesNotMatch(message, /hunter2/)
      return true
    },
  )
})

test('a policy is made of defaults, preset, the crawl, and the config, in this order', () => {
  const settings = makeSettings(
    defineConfig({ preset: 'staging', policies: { slow: { lease: '1m', retries: 9 } } }),
    null,
  )
  const policy = settings.policyFor('slow', { retries: 5, maxCrashes: 7 })
  assert.equal(policy.staleAfterMs, 15 * 60_000)
  assert.equal(policy.onStale, 'fail')
  assert.equal(policy.maxCrashes, 7)
  assert.equal(policy.retries, 9)
  assert.equal(policy.leaseMs, 60_000)
  assert.deepEqual(makeSettings({}, null).policyFor('constructor'), DEFAULT_POLICY)
})

test('a run is judged by the preset of now, but what its crawl asked for stays', () => {
  const production = makeSettings({ preset: 'production' }, null)
  const stale = (kept: Partial<Policy>): unknown[] => {
    const run = { source: 'shop', policy: { ...DEFAULT_POLICY, ...kept } } as Run
    const { staleAfterMs, onStale } = production.policyOf(run)
    return [staleAfterMs, onStale]
  }
  const [quarter, half, hours] = [900_000, 1_800_000, 7_200_000]
  assert.deepEqual(stale({}), [half, 'fail'], 'queued before there was a preset')
  assert.deepEqual(stale({ staleAfterMs: quarter, onStale: 'fail' }), [half, 'fail'], 'another one')
  assert.deepEqual(stale({ staleAfterMs: hours, onStale: 'fail' }), [hours, 'fail'])
  assert.deepEqual(stale({ staleAfterMs: half, onStale: 'keep' }), [half, 'keep'])
  const origins = production
    .settingsOf('shop', { ...DEFAULT_POLICY, staleAfterMs: hours, onStale: 'fail' })
    .filter(({ name }) => name === 'staleAfter' || name === 'onStale')
  assert.deepEqual(
    origins.map(({ value, origin }) => [value, origin]),
    [
      ['2h', 'crawl'],
      ['fail', 'preset'],
    ],
  )
})

test('cleaning after less than twelve hours gets a warning', () => {
  const { warnings } = makeSettings({ policies: { quick: { abandonAfter: '1h' } } }, null)
  assert.match(warnings.join(), /policies\["quick"\]\.abandonAfter is below 12 h/)
})

for (const [what, text, expected] of [
  ['no default export', 'export const db = 1', /has no default export/],
  [
    'syntax that Node does not run',
    'export enum A { B }\nexport default {}',
    /could not be loaded/,
  ],
  ['something else than an object', 'export default []', /must be an object/],
] as const) {
  test(`a config with ${what} is refused with advice`, async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'unstuck.config.ts'), text)
    await assert.rejects(loadSettings(folder.path), { code: 'E_USAGE', message: expected })
  })
}

test('a run that was begun with settings which the config does not fit is judged by its own', () => {
  const settings = makeSettings({ policies: { p: { lease: '15s' } } }, 'unstuck.config.ts')
  const own = makePolicy({ heartbeat: '10s', lease: '30s' }).policy
  const run = (policy: Policy) => settings.policyOf({ source: 'p', policy } as Run)

  assert.equal(run(own).leaseMs, 30_000)
  assert.equal(
    run({ ...DEFAULT_POLICY, leaseMs: 60_000 }).leaseMs,
    15_000,
    "else the config's word counts",
  )
})
