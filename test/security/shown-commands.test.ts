import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { shellWord } from '../../src/core/model/shell-command.ts'
import type { RunId } from '../../src/core/model/id.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { createApiClient, type ApiClient } from '../../src/testing/api-client.ts'
import { listTargets, claimOne, savePage, enqueueCrawl } from '../../src/testing/fixtures.ts'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { cliCommand } from '../../src/testing/unstuck-cli.ts'

/** Groups and a source as a hostile site, or a careless person, would name them. */
const GROUPS = ["it's; touch pwned", '$(touch pwned)', '--yes', 'CA', '\u001b]0;x\u0007']
const SOURCE = "-a'b;touch pwned;`id`"

type Fixture = { readonly run: RunId; readonly ids: readonly string[] }

/** Each group has a target that failed, one that is parked and one that is open. */
async function createFixture(api: ApiClient): Promise<Fixture> {
  const { store } = api.ctx
  const kinds = ['failed', 'parked', 'open']
  const targets = kinds.flatMap((kind) =>
    GROUPS.map((group, n) => ({ key: `${kind}-${n}`, group })),
  )
  const run = await enqueueCrawl(store, targets, { source: SOURCE })
  const worker = await api.registerLiveWorker(SOURCE)
  for (const kind of ['failed', 'parked']) {
    for (const _ of GROUPS) {
      const claim = await savePage(store, await claimOne(store, worker, { source: SOURCE }))
      if (kind === 'failed') await store.fail([{ ...claim, error: 'HTTP 500', becomes: 'failed' }])
      else await store.fail([{ ...claim, error: 'it took down 3 workers', becomes: 'parked' }])
    }
  }
  const all = await listTargets(store, run)
  return { run, ids: all.map(({ id }) => id) }
}

/** What an action may change, without times and the actor. */
async function stateOf(store: Store): Promise<unknown> {
  const { items: runs } = await store.runs({ source: SOURCE, limit: 10 })
  const state = []
  for (const { id, status } of runs.toReversed()) {
    const targets = await listTargets(store, id)
    state.push({
      status,
      targets: targets.map(({ key, status, page, next, cursor, lastError }) => [
        [key, status, page, next],
        [cursor, lastError?.replace(/^parked by .*/, 'parked by')],
      ]),
    })
  }
  return state
}

type Call = readonly [path: string, body: Record<string, unknown>]

const NO_FIXTURE: Fixture = { run: '', ids: [] }

/** Every action of the API on runs and targets, with each of its ways to choose. */
function actionCalls({ run, ids }: Fixture): Record<string, Call> {
  const at = (kind: number, n: number): string => ids[kind * GROUPS.length + n]!
  const [failed, parked, open] = [at(0, 0), at(1, 0), at(2, 0)]
  const because = "it's `wrong`; $(touch pwned)"
  const [some, unpark] = [[parked, at(1, 3)], `/api/runs/${run}/unpark`]
  const reset = `/api/runs/${run}/reset-failed`
  const rewound = { to: 0, next: "https://a.example/?q='$(id)", cursor: { "it's": ['`id`'] } }
  return {
    cancel: [`/api/runs/${run}/cancel`, { because }],
    retry: [`/api/runs/${run}/retry`, { because }],
    'reset all': [reset, {}],
    'reset groups': [reset, { groups: GROUPS.slice(0, 3) }],
    'reset those tried once': [reset, { maxAttempts: 1, groups: [GROUPS[4]] }],
    'reset one': [`/api/targets/${failed}/reset`, {}],
    'unpark all': [unpark, {}],
    'unpark groups': [unpark, { groups: GROUPS.slice(1, 3) }],
    'unpark some': [unpark, { targets: some }],
    'unpark those of some that are in a group': [unpark, { targets: some, groups: ['CA'] }],
    'unpark one': [`/api/targets/${parked}/unpark`, {}],
    'park some': ['/api/targets/park', { targets: [failed, open], because }],
    'park one': [`/api/targets/${open}/park`, {}],
    rewind: [`/api/targets/${failed}/rewind`, rewound],
  }
}

test('S41 a shown command does exactly what the action does', async () => {
  for (const name of Object.keys(actionCalls(NO_FIXTURE))) {
    await using api = await createApiClient()
    const { store, database } = api.ctx
    const [path, body] = actionCalls(await createFixture(api))[name]!
    using folder = temporaryFolder()
    const copy = join(folder.path, 'unstuck.db')
    const db = new DatabaseSync(database.url.slice('sqlite:'.length))
    db.exec(`VACUUM INTO '${copy}'`)
    db.close()

    const before = await stateOf(store)
    const { command } = await api.post(path, { ...body, dryRun: true })
    assert.deepEqual(await stateOf(store), before)
    const done = await api.post(path, body)
    const after = await stateOf(store)
    assert.equal(done.command, command)
    assert.notDeepEqual(after, before, name)

    const { stderr } = await runInShell(command, folder.path, copy)
    assert.equal(stderr, '', `${name}: ${command}`)
    const other = await openStore(`sqlite:${copy}`)
    assert.deepEqual(await stateOf(other), after, `${name}: ${command}`)
    await other.close()
    assert.deepEqual(
      readdirSync(folder.path).filter((file) => !file.startsWith('unstuck.db')),
      [],
    )
  }
})

/** As a person would, into a real shell, with the real command line. */
async function runInShell(command: string, cwd: string, database: string) {
  const { command: argv, env } = cliCommand([])
  const script = `unstuck() { ${argv.map(shellWord).join(' ')} "$@"; }\n${command}`
  return promisify(execFile)('sh', ['-c', script], {
    cwd,
    env: { ...env, UNSTUCK_DB: `sqlite:${database}` },
  })
}
