import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STEADY } from '../../src/core/decide/liveness.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { resetFailed, revert } from '../../src/core/recovery/operator-actions.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ypTargets } from '../../src/testing/users-tables.ts'
import { ago, setStage } from './stage.ts'

/** What a policy or a person makes of rows that are targets, beyond putting the silent back in line. */

const silent = {
  status: 'IN_PROGRESS',
  claimed_by: 'w-1',
  claimed_at: ago(70),
  heartbeat_at: ago(61),
  page_current: 4,
}

test('a target whose worker fell silent is held as STUCK where the policy says so, and says why', async () => {
  await using stage = await setStage(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: [{ id: 1, slug: 'a', ...silent }],
      options: { policy: { lease: '60m', onCrash: 'hold' } },
    },
  })

  const { verdicts } = await recover(stage.door, { judge: STEADY })

  assert.deepEqual(
    verdicts.map(({ action, to, applied }) => [action, to, applied]),
    [['hold', 'stuck', true]],
  )
  const [row] = await stage.rows('yp')
  assert.deepEqual([row!['status'], row!['finished_at']], ['STUCK', null])
  assert.match(String(row!['last_error']), /is silent: last beat 61 min ago/)
  assert.equal(row!['claimed_by'], 'w-1', 'who had it can still be asked')
})

test('a target whose holding a person took back is left alone, however long it is silent', async () => {
  await using stage = await setStage(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: [{ id: 1, slug: 'a', ...silent }],
      options: { policy: { lease: '60m', onCrash: 'hold' } },
    },
  })
  const before = await stage.rows('yp')
  await recover(stage.door, { judge: STEADY })
  const [run] = (await stage.store.runs({ limit: 1 })).items

  await revert(stage.door, run!.id)

  assert.deepEqual(await stage.rows('yp'), before)
  assert.deepEqual((await recover(stage.door, { judge: STEADY })).verdicts, [])
  await stage.sql(`UPDATE yp_targets SET heartbeat_at = '${ago(-1).toISOString()}'`)
  await recover(stage.door, { judge: STEADY })
  await stage.sql(`UPDATE yp_targets SET heartbeat_at = '${ago(62).toISOString()}'`)
  assert.equal((await recover(stage.door, { judge: STEADY })).verdicts.length, 1, 'somebody had it')
})

test('reset-failed of a group leaves the others', async () => {
  await using stage = await setStage(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: ['CA', 'TX', 'TX'].map((state, n) => ({
        id: n + 1,
        slug: `s-${n}`,
        state,
        status: 'FAILED',
        last_error: 'boom',
      })),
    },
  })
  const [run] = (await stage.store.runs({ limit: 1 })).items

  const { targets } = await resetFailed(stage.door, run!.id, { groups: ['TX'] })

  assert.equal(targets, 2)
  assert.deepEqual(
    (await stage.rows('yp')).map(({ status }) => status),
    ['FAILED', 'PLANNED', 'PLANNED'],
  )
})
