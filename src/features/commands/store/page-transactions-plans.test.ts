import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimOne, makeItems, nextCheckpoint, SOURCE } from '../../../testing/fixtures.ts'
import { setUpOwnProgram } from '../../../testing/own-program.ts'

type Plan = { 'Node Type': string; 'Index Name'?: string; Plans?: Plan[] }

test('unstuck.checkpoint finds run, target, items and counters by their keys, with a plan that it keeps', async () => {
  await using scene = await setUpOwnProgram()
  const { db, store, run, worker, claimed, program } = scene
  await db.raw(/* sql */ `
    INSERT INTO unstuck.run (id, source, kind, status, policy)
    SELECT gen_random_uuid(), 'old-' || n, 'single', 'queued', '{}' FROM generate_series(1, 5000) n;
    INSERT INTO unstuck.target (id, run_id, key)
    SELECT gen_random_uuid(), '${run}', 'many-' || n FROM generate_series(1, 20000) n;
    INSERT INTO unstuck.item (source, key, key_version, data, changed_in, run_id)
    SELECT '${SOURCE}', 'many-' || n, 0, '{}', '', '${run}' FROM generate_series(1, 20000) n;
    INSERT INTO unstuck.run_counters (run_id, group_name, writer)
    SELECT '${run}', '', 'old-' || n FROM generate_series(1, 5000) n;
    INSERT INTO unstuck.run_counters (run_id, group_name, writer)
    SELECT id, '', 'tx/' || source FROM unstuck.run;
    ANALYZE unstuck.run, unstuck.target, unstuck.item, unstuck.run_counters
  `)
  const plans: Plan[] = []
  program.client.on('notice', ({ message = '' }) => {
    const [, json] = /plan:\n(.*)/s.exec(message) ?? []
    if (json) plans.push((JSON.parse(json) as { Plan: Plan }).Plan)
  })
  await program.query(/* sql */ `
    LOAD 'auto_explain';
    SET auto_explain.log_min_duration = 0;
    SET auto_explain.log_nested_statements = on;
    SET auto_explain.log_format = json;
    SET client_min_messages = log;
  `)
  // As often as a plan is made anew without the setting of the function.
  const other = await claimOne(store, worker)
  for (const claim of [claimed, other]) {
    for (let n = 0; n < 7; n++) {
      const page = nextCheckpoint({ ...claim, seq: n, page: n }, { items: makeItems(n, 3) })
      plans.length = 0
      await program.save(store, page)

      const found = plans.flatMap(nodes)
      const types = found.map((node) => node['Node Type'])
      assert.ok(!types.includes('Seq Scan'), types.join())
      const indexes = found.flatMap((node) => node['Index Name'] ?? [])
      assert.deepEqual([...new Set(indexes)].sort(), [
        'run_counters_pkey',
        'run_pkey',
        'target_pkey',
      ])
    }
  }
})

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)]
}
