import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Mapping, UserRow } from '../features/adopted/mapping.ts'
import { rowTraits } from '../features/adopted/runs/status-mapping.ts'
import { addressMistake } from '../lib/files/database-address.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import { makePolicy } from '../lib/validate/policy-options.ts'
import type { Run } from '../core/model/run.ts'
import { temporaryFolder } from '../testing/sqlite-engine.ts'
import { findDatabaseAddress } from './address.ts'
import { configFolder } from '../lib/files/config-file.ts'
import { defineConfig, loadSettings, makeSettings } from './config.ts'
import type { Settings } from '../contracts/settings.ts'
import { ADOPTED_SECTION } from '../features/adopted/config.ts'
import { STANDARD_TRAITS } from '../testing/traits.ts'

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
  const found = await findDatabaseAddress({
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

async function resolveAddress(flag?: string, env?: string, db?: string): Promise<string[]> {
  const question = { flag, env, configured: async () => db, folder: '/home' }
  const { address, from } = await findDatabaseAddress(question)
  return [address, from]
}

test('the flag comes before the environment, the environment before the config', async () => {
  const [a, b, c] = ['sqlite:a.db', 'sqlite:/b.db', 'postgres://h/c']
  assert.deepEqual(await resolveAddress(a, b, c), ['sqlite:/home/a.db', '--db'])
  assert.deepEqual(await resolveAddress(undefined, b, c), [b, 'UNSTUCK_DB'])
  assert.deepEqual(await resolveAddress(undefined, '', c), [c, 'config'])
  assert.deepEqual(await resolveAddress(), ['sqlite:/home/.unstuck/unstuck.db', 'default'])
})

test('the config is not even read when the address is given', async () => {
  let read = 0
  const configured = async (): Promise<undefined> => void read++
  await findDatabaseAddress({ flag: 'sqlite:a.db', env: undefined, configured, folder: '/' })
  assert.equal(read, 0)
})

test('a wrong address is explained without being repeated', async () => {
  for (const flag of ['mysql://me:hunter2@h/x', 'me:hunter2@h', 'postgres:hunter2', '']) {
    await assert.rejects(
      findDatabaseAddress({ flag, env: undefined, configured: nothing, folder: '/' }),
      (error: Error) =>
        error.message.startsWith('--db must be sqlite:PATH') && !/hunter2/.test(error.message),
    )
  }
  assert.match(addressMistake('data/x.db') ?? '', /did you mean sqlite:data\/x\.db\?/)
  assert.match(addressMistake('sqlite://x.db') ?? '', /two slashes/)
})

test('all errors are reported at once, with suggestions', async () => {
  const config = {
    polices: {},
    db: 'mysql://me:hunter2@h/x',
    preset: 'prod',
    policies: { slow: { leese: '1m', heartbeat: 'often' }, fast: 3 },
  }
  await assert.rejects(
    async () => makeSettings(config, '/x/unstuck.config.ts'),
    ({ message, code }: Error & { code: string }) => {
      assert.equal(code, 'E_USAGE')
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

test('a policy is made of defaults, preset, the crawl, and the config, in this order', async () => {
  const settings = await makeSettings(
    defineConfig({ preset: 'staging', policies: { slow: { lease: '1m', retries: 9 } } }),
    null,
  )
  const policy = settings.policyFor('slow', { retries: 5, maxCrashes: 7 })
  assert.equal(policy.staleAfterMs, 15 * 60_000)
  assert.equal(policy.onStale, 'fail')
  assert.equal(policy.maxCrashes, 7)
  assert.equal(policy.retries, 9)
  assert.equal(policy.leaseMs, 60_000)
  assert.deepEqual((await makeSettings({}, null)).policyFor('constructor'), DEFAULT_POLICY)
})

test('a run is assessed with the current preset, and keeps the settings of its crawl', async () => {
  const production = await makeSettings({ preset: 'production' }, null)
  const stale = (kept: Partial<Policy>): unknown[] => {
    const run = {
      source: 'shop',
      policy: { ...DEFAULT_POLICY, ...kept },
      traits: STANDARD_TRAITS,
    } as Run
    const { staleAfterMs, onStale } = production.policyOf(run)
    return [staleAfterMs, onStale]
  }
  const [quarter, half, hours] = [900_000, 1_800_000, 7_200_000]
  assert.deepEqual(stale({}), [half, 'fail'], 'queued before there was a preset')
  assert.deepEqual(stale({ staleAfterMs: quarter, onStale: 'fail' }), [half, 'fail'], 'another one')
  assert.deepEqual(stale({ staleAfterMs: hours, onStale: 'fail' }), [hours, 'fail'])
  assert.deepEqual(stale({ staleAfterMs: half, onStale: 'keep' }), [half, 'keep'])
  const origins = production
    .settingsOf('shop', {
      policy: { ...DEFAULT_POLICY, staleAfterMs: hours, onStale: 'fail' },
      traits: STANDARD_TRAITS,
    })
    .filter(({ name }) => name === 'staleAfter' || name === 'onStale')
  assert.deepEqual(
    origins.map(({ value, origin }) => [value, origin]),
    [
      ['2h', 'crawl'],
      ['fail', 'preset'],
    ],
  )
})

test('cleaning after less than twelve hours gets a warning', async () => {
  const { warnings } = await makeSettings({ policies: { quick: { abandonAfter: '1h' } } }, null)
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

for (const [what, text] of [
  ['a default export', 'export default {}'],
  ['an import', "import 'node:path'"],
  ['a top-level await', 'const db: string = await "x"'],
] as const) {
  test(`a config with ${what} in a CommonJS package is refused with both ways to change that`, async () => {
    using folder = temporaryFolder()
    const manifest = join(folder.path, 'package.json')
    writeFileSync(manifest, '{ "type": "commonjs" }')
    writeFileSync(join(folder.path, 'unstuck.config.ts'), text)
    await assert.rejects(loadSettings(folder.path), (error: Error) => {
      assert.ok(error.message.includes(`${manifest} has no "type": "module"`), error.message)
      assert.match(
        error.message,
        /`npm pkg set type=module`, or name the file unstuck\.config\.mts\.$/,
      )
      return true
    })
  })
}

test('a run started with settings that contradict the config is assessed with its own', async () => {
  const settings = await makeSettings({ policies: { p: { lease: '15s' } } }, 'unstuck.config.ts')
  const own = makePolicy({ heartbeat: '10s', lease: '30s' }).policy
  const run = (policy: Policy) =>
    settings.policyOf({ source: 'p', policy, traits: STANDARD_TRAITS })

  assert.equal(run(own).leaseMs, 30_000)
  assert.equal(
    run({ ...DEFAULT_POLICY, leaseMs: 60_000 }).leaseMs,
    15_000,
    "else the config's word counts",
  )
})

const COURSES = {
  table: 'course_crawler.crawl_runs',
  columns: { id: 'id', status: 'status' },
  statuses: { active: 'running', failed: 'failed' },
} as const

/** A run that is a row of the adopted table `courses`. */
function makeAdoptedRun(settings: Settings, source = 'courses'): Run {
  const [table] = settings.section(ADOPTED_SECTION) as [Mapping]
  return { source, policy: table.policy, traits: rowTraits(table, '7') } as Run
}

test('a config setting that needs an unmapped status does not apply to the rows of that table', async () => {
  const policies = { maths: { onCrash: 'resume', onStalled: 'resume', lease: '1m' } } as const
  const assessed = async (courses: object) => {
    const settings = await makeSettings({ adopted: { courses }, policies }, null)
    const { onCrash, onStalled, leaseMs } = settings.policyOf(makeAdoptedRun(settings, 'maths'))
    return [onCrash, onStalled, leaseMs]
  }
  assert.deepEqual(await assessed(COURSES), ['fail', 'alert', 60_000])
  const statuses = { ...COURSES.statuses, queued: 'waiting' }
  assert.deepEqual(await assessed({ ...COURSES, statuses }), ['resume', 'resume', 60_000])
})

test('errors in adopted tables are reported together with all others', async () => {
  const adopted = {
    courses: { ...COURSES, columns: { id: 'id"', status: 'status' } },
    same: COURSES,
    again: COURSES,
  }
  await assert.rejects(
    async () => makeSettings({ preset: 'prod', adopted }, 'unstuck.config.ts'),
    ({ message }: Error) => {
      assert.match(message, /preset must be one of/)
      assert.match(message, /adopted\.courses\.columns\.id must be a name of letters/)
      assert.match(message, /adopted\.again is the same table as adopted\.same/)
      return true
    },
  )
  await assert.rejects(
    async () => makeSettings({ adopted: [COURSES] }, null),
    /adopted must be an object/,
  )
  assert.deepEqual((await makeSettings({}, null)).section(ADOPTED_SECTION), [])
})

test("a row's policy is the preset, its table's policy and the config of its source, in this order", async () => {
  const minutes = (n: number): number => n * 60_000
  const staleAfter = (settings: Settings, source?: string): unknown[] => {
    const { staleAfterMs, onStale } = settings.policyOf(makeAdoptedRun(settings, source))
    return [staleAfterMs, onStale]
  }
  const config = { preset: 'production', adopted: { courses: COURSES } } as const
  assert.deepEqual(staleAfter(await makeSettings(config, null)), [minutes(30), 'fail'])
  // As long as another preset would have it, and yet the user's own word.
  const own = { courses: { ...COURSES, policy: { staleAfter: '5m', heartbeat: '30s' } } } as const
  assert.deepEqual(staleAfter(await makeSettings({ ...config, adopted: own }, null)), [
    minutes(5),
    'fail',
  ])
  const policies = { maths: { staleAfter: '2h', runRetries: 3 }, arts: { lease: '15s' } } as const
  const all = await makeSettings({ ...config, adopted: own, policies }, null)
  assert.deepEqual(staleAfter(all, 'maths'), [minutes(120), 'fail'])
  assert.equal(
    all.policyOf(makeAdoptedRun(all, 'maths')).runRetries,
    0,
    'nothing is added to a table',
  )
  assert.equal(
    all.policyOf(makeAdoptedRun(all, 'arts')).leaseMs,
    minutes(5),
    'what does not fit is left',
  )
})

test('settings of an adopted table are shown with their origin', async () => {
  const adopted = { courses: { ...COURSES, policy: { maxSilence: '1h' } } } as const
  const policies = { courses: { startupGrace: '1m' } } as const
  const settings = await makeSettings({ preset: 'staging', adopted, policies }, null)
  assert.deepEqual(settings.sources, ['courses'])
  for (const run of [makeAdoptedRun(settings), undefined]) {
    const shown = settings.settingsOf('courses', run).filter(({ origin }) => origin !== 'default')
    assert.deepEqual(
      shown.map(({ name, value, origin }) => `${name} ${value} ${origin}`),
      [
        'lease 5m table',
        'maxSilence 1h table',
        'staleAfter 15m preset',
        'onStale fail preset',
        'onCrash fail table',
        'runRetries 0 table',
        'startupGrace 1m config',
      ],
    )
  }
})

test('the files and the database of a table are where the config is', async () => {
  const elsewhere = {
    ...COURSES,
    db: 'sqlite:data/app.db',
    checkpoint: (row: UserRow) => (row['id'] === 7 ? 'checkpoints/7.json' : null),
    outputDir: ({ to = 'out' }: UserRow) => String(to),
  }
  const [table] = (
    await makeSettings({ adopted: { elsewhere } }, '/app/unstuck.config.ts')
  ).section(ADOPTED_SECTION)
  assert.equal(table!.db, 'sqlite:/app/data/app.db')
  assert.equal(table!.checkpoint!({ id: 7 }), '/app/checkpoints/7.json')
  assert.equal(table!.checkpoint!({ id: 8 }), null)
  assert.equal(table!.outputDir!({}), '/app/out')
  for (const to of ['/out', '../out', 'a/../../out'])
    assert.throws(() => table!.outputDir!({ to }), /is outside \/app\. .* filesIn/)
  const files = { ...elsewhere, filesIn: '/out' }
  const [named] = (await makeSettings({ adopted: { files } }, '/app/unstuck.config.ts')).section(
    ADOPTED_SECTION,
  )
  assert.equal(named!.outputDir!({ to: '/out/of/7' }), '/out/of/7')
  assert.equal(named!.checkpoint!({ id: 7 }), '/out/checkpoints/7.json')
})

test('cleaning the rows of a table after less than twelve hours gets a warning', async () => {
  const policy = { abandonAfter: '1h' } as const
  const { warnings } = await makeSettings({ adopted: { 'my runs': { ...COURSES, policy } } }, null)
  assert.match(warnings.join(), /^adopted\["my runs"\]\.policy\.abandonAfter is below 12 h/)
})
