import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSettings } from '../../src/app/config.ts'
import { openAll } from '../../src/app/open-database.ts'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { findAcknowledgeable } from '../../src/presenters/acknowledge.ts'
import { createAdoptedProject } from '../../src/testing/adopted-project.ts'
import { createApiClient } from '../../src/testing/api-client.ts'
import { ENGINES } from '../../src/testing/open-test-table.ts'

/** Rows of a table of targets go by the user's own ids, and a stuck table can be acknowledged. */

const ago = new Date(Date.now() - 3 * 86_400_000).toISOString()
const DDL = `
  CREATE TABLE pages (id integer PRIMARY KEY, state text, path text, started text, beat text, why text);
  CREATE TABLE files (id integer PRIMARY KEY, state text, path text, started text, beat text, why text);
  INSERT INTO pages VALUES (17, 'busy', '/a', '${ago}', '${ago}', NULL), (18, 'broken', '/b', '${ago}', NULL, 'gone'),
    (19, 'done', '/c', '${ago}', NULL, NULL);
  INSERT INTO files VALUES (18, 'done', '/x', '${ago}', NULL, NULL);
`
const mapping = (table: string): AdoptedOptions => ({
  table,
  kind: 'targets',
  columns: {
    id: 'id',
    status: 'state',
    key: 'path',
    startedAt: 'started',
    heartbeatAt: 'beat',
    error: 'why',
  },
  statuses: {
    planned: 'new',
    active: 'busy',
    failed: 'broken',
    succeeded: 'done',
    parked: 'aside',
  },
  policy: { lease: '150ms', heartbeat: '50ms' },
})
const adopted = { pages: mapping('pages'), files: mapping('files') }

for (const engine of ENGINES) {
  test(`rows of a table of targets go by their own ids, on ${engine.name}`, async () => {
    await using project = await createAdoptedProject(engine, DDL, adopted)
    const { cli, json } = project
    const state = async (id: number) =>
      (await project.sql(`SELECT state FROM pages WHERE id = ${id}`))[0]!['state']
    for (const name of ['17', 'pages:17'])
      assert.deepEqual((await json('explain', name)).target.origin, { table: 'pages', key: '17' })
    assert.match((await cli('explain', '17')).stdout, /Target pages:17, \/a: /)
    const offered = await cli('complete', 'fish', '--', 'unstuck', 'explain', 'pages:')
    assert.match(offered.stdout, /^pages:18\t/m)
    for (const args of [
      ['show', '17'],
      ['fail', '17'],
      ['items', '17'],
    ])
      assert.match((await cli(...args)).stderr, /`unstuck explain pages:17`/, args.join(' '))
    const both = await cli('explain', '18')
    assert.match(both.stderr, /`unstuck explain pages:18`/)
    assert.match(both.stderr, /`unstuck explain files:18`/)
    assert.match((await cli('targets', 'pages')).stdout, /^17 +in progress/m)
    assert.match((await cli('recover', '--dry-run')).stdout, /target \/a \(pages:17\) of pages/)

    const marked = await json('acknowledge', 'pages:18')
    assert.equal(marked.undo.command, 'unstuck acknowledge pages:18 --undo')
    assert.equal((await json('history')).items[0].subject, 'target pages:18')
    assert.equal((await cli(...marked.undo.command.split(' ').slice(1))).code, 0)
    assert.equal((await cli('park', '17')).code, 0)
    assert.equal(await state(17), 'aside')
    const unparked = await cli('unpark', '17')
    assert.deepEqual([unparked.code, await state(17)], [0, 'new'])
    assert.match((await cli('history')).stdout, /park target .*pages:17.* of run/)

    const settings = await makeSettings({ db: project.url, adopted }, null)
    const store = await openAll({ settings, address: project.url, log: () => {} })
    await using _closing = { [Symbol.asyncDispose]: () => store.close() }
    await using api = await createApiClient({
      app: { open: async () => store, settings: async () => settings },
    })
    for (const name of ['17', 'pages:17', 'pages%3A17'])
      assert.equal((await api.get(`/api/targets/${name}`)).target.origin.key, '17')
    await api.get('/api/targets/99', 400)
    await api.get('/api/targets/0123abcd', 404)
    const { command } = await api.post('/api/targets/pages:18/acknowledge')
    assert.equal(command, 'unstuck acknowledge pages:18')
    const reset = await api.post('/api/targets/pages:18/reset', { dryRun: true })
    assert.match(reset.command, / --target=pages:18( |$)/)
    assert.equal((await cli(...reset.command.split(' ').slice(1), '--dry-run')).code, 0)
    await api.post('/api/acknowledge', { targets: ['pages:18'], undo: true })
    await api.post('/api/targets/park', { targets: ['17'] })
    assert.equal(await state(17), 'aside')
    const { items } = await api.get('/api/runs/pages/targets?limit=9')
    assert.deepEqual(items.map(({ origin }: any) => origin.key).toSorted(), ['17', '18', '19'])
  })

  test(`a dry run of park is refused where park is, and no refusal recommends it, on ${engine.name}`, async () => {
    const { parked: _, ...statuses } = mapping('pages').statuses
    const pages = { ...mapping('pages'), statuses }
    await using project = await createAdoptedProject(engine, DDL, { pages })
    const refusal = /No status is mapped for park on a target of pages: map .*statuses\.parked or /
    for (const args of [
      ['park', '17', '--dry-run'],
      ['park', '17'],
      ['cancel', 'pages'],
    ]) {
      const { code, stderr } = await project.cli(...args)
      assert.notEqual(code, 0, args.join(' '))
      assert.match(stderr, refusal)
      assert.doesNotMatch(stderr, /`unstuck park`/)
    }
  })

  test(`rows that are acknowledged, and those that are not, are listed on their own, on ${engine.name}`, async () => {
    await using project = await createAdoptedProject(engine, DDL, adopted)
    const rows = [20, 21, 22, 23].map((id) => `(${id}, 'broken', '/${id}', '${ago}', NULL, 'gone')`)
    await project.sql(`INSERT INTO pages VALUES ${rows.join(', ')}`)
    for (const id of [18, 20, 22]) await project.json('acknowledge', `pages:${id}`)

    const settings = await makeSettings({ db: project.url, adopted }, null)
    const store = await openAll({ settings, address: project.url, log: () => {} })
    await using _closing = { [Symbol.asyncDispose]: () => store.close() }
    const [run] = (await store.runs({ source: 'pages', limit: 1 })).items
    const pagesOf = async (acknowledged: boolean | undefined, limit: number) => {
      const pages: (string | undefined)[][] = []
      for (let after: string | undefined; ;) {
        const filter = { statuses: ['failed'] as const, acknowledged, limit, after }
        const { items, next } = await store.targets(run!.id, filter)
        pages.push(items.map(({ origin }) => origin?.key))
        if (next === null) return pages.filter((page) => page.length > 0)
        after = next
      }
    }
    const all = (await pagesOf(undefined, 9)).flat()
    const isMarked = (key: string | undefined) => ['18', '20', '22'].includes(key!)
    for (const limit of [1, 2, 9]) {
      const [marked, others] = [await pagesOf(true, limit), await pagesOf(false, limit)]
      assert.deepEqual(marked.flat(), all.filter(isMarked))
      assert.deepEqual(
        others.flat(),
        all.filter((key) => !isMarked(key)),
      )
      assert.ok([...marked, ...others].every((page) => page.length <= limit))
    }
    const letters = async (acknowledged: boolean) =>
      (await store.deadLetters({ acknowledged, limit: 9 })).items.length
    assert.deepEqual([await letters(true), await letters(false)], [3, 2])
    const found = async (undo: boolean) =>
      (await findAcknowledgeable(store, { source: 'pages', undo })).map(({ id }) => id)
    assert.deepEqual([await found(false), await found(true)], [[run!.id], [run!.id]])
    await project.sql(`UPDATE pages SET state = 'done' WHERE id IN (21, 23)`)
    assert.deepEqual([await found(false), await found(true)], [[], [run!.id]])
  })

  test(`a stuck table of targets is acknowledged and that is undone, on ${engine.name}`, async () => {
    await using project = await createAdoptedProject(engine, DDL, adopted)
    const { cli, json } = project
    const codes = async () => [(await cli('status')).code, (await cli('doctor')).code]
    assert.deepEqual(await codes(), [3, 3])
    const marked = await json('acknowledge', 'pages')
    assert.deepEqual(await codes(), [0, 0])
    assert.equal((await json('status')).severity, 'ok')
    assert.equal((await cli(...marked.undo.command.split(' ').slice(1))).code, 0)
    assert.deepEqual(await codes(), [3, 3])

    const settings = await makeSettings({ db: project.url, adopted }, null)
    const store = await openAll({ settings, address: project.url, log: () => {} })
    await using _closing = { [Symbol.asyncDispose]: () => store.close() }
    await using api = await createApiClient({
      app: { open: async () => store, settings: async () => settings },
    })
    const { undo } = await api.post('/api/runs/pages/acknowledge')
    assert.equal((await api.get('/api/overview')).severity, 'ok')
    // A row that fails afterwards was not acknowledged.
    await project.sql(`UPDATE pages SET state = 'broken' WHERE id = 19`)
    assert.equal((await api.get('/api/overview')).severity, 'stuck')
    await project.sql(`UPDATE pages SET state = 'done' WHERE id = 19`)
    assert.equal((await api.get('/api/overview')).severity, 'ok')
    for (const { path, body } of undo.calls) await api.post(path, body)
    assert.equal((await api.get('/api/overview')).severity, 'stuck')
  })
}
