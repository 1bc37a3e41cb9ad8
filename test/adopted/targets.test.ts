import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { resetFailed, revert } from '../../src/operator/actions.ts'
import { acknowledge } from '../../src/presenters/acknowledge.ts'
import { ENGINES } from '../../src/testing/open-test-table.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ypTargets } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

/** What a policy or a person makes of rows that are targets, beyond putting the silent back in the queue. */

/** Made by each test: the file may wait for others before it runs. */
const silentTarget = () => ({
  status: 'IN_PROGRESS',
  claimed_by: 'w-1',
  claimed_at: minutesAgo(70),
  heartbeat_at: minutesAgo(61),
  page_current: 4,
})

test('a target whose worker is silent is set to STUCK if the policy is set so, with the reason', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: [{ id: 1, slug: 'a', ...silentTarget() }],
      options: { policy: { lease: '60m', onCrash: 'hold' } },
    },
  })

  const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  assert.deepEqual(
    verdicts.map(({ action, to, applied }) => [action, to, applied]),
    [['hold', 'stuck', true]],
  )
  const [row] = await ctx.rows('yp')
  assert.deepEqual([row!['status'], row!['finished_at']], ['STUCK', null])
  assert.match(String(row!['last_error']), /is silent: last heartbeat 61 min ago/)
  assert.equal(row!['claimed_by'], 'w-1', 'who had it can still be asked')
})

test('a target whose hold was reverted by an operator is left alone, however long it is silent', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: [{ id: 1, slug: 'a', ...silentTarget() }],
      options: { policy: { lease: '60m', onCrash: 'hold' } },
    },
  })
  const before = await ctx.rows('yp')
  await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  const [run] = (await ctx.store.runs({ limit: 1 })).items

  await revert(ctx.operator, run!.id)

  assert.deepEqual(await ctx.rows('yp'), before)
  assert.deepEqual((await recover(ctx.operator, { observer: TRUSTED_OBSERVER })).verdicts, [])
  await ctx.sql(`UPDATE yp_targets SET heartbeat_at = '${minutesAgo(-1).toISOString()}'`)
  await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  await ctx.sql(`UPDATE yp_targets SET heartbeat_at = '${minutesAgo(62).toISOString()}'`)
  assert.equal(
    (await recover(ctx.operator, { observer: TRUSTED_OBSERVER })).verdicts.length,
    1,
    'another process had it',
  )
})

for (const engine of ENGINES) {
  test(`acknowledging a table marks the rows that are gone or stalled, and none that recovery may still end, on ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, {
      yp: {
        table: ypTargets,
        rows: [
          { id: 1, slug: 'gone', ...silentTarget() },
          { id: 2, slug: 'unknown', ...silentTarget() },
          { id: 3, slug: 'slow', state: 'CA', ...silentTarget() },
          { id: 4, slug: 'stalled', state: 'TX', ...silentTarget() },
        ],
        options: {
          policy: { lease: '60m', maxSilence: '60m', groups: { CA: { maxSilence: '3h' } } },
          alive({ slug }) {
            if (slug === 'unknown') throw new Error('no answer')
            return slug !== 'gone'
          },
        },
      },
    })
    const [run] = (await ctx.store.runs({ limit: 1 })).items
    const marked = async (): Promise<string[]> => {
      const { items } = await ctx.store.targets(run!.id, { limit: 9 })
      return items.filter(({ acknowledgedAt }) => acknowledgedAt !== null).map(({ key }) => key)
    }

    const planned = await acknowledge(ctx.operator, { runs: [run!] }, { undo: false, dryRun: true })
    assert.deepEqual([planned.targets, await marked()], [2, []])
    await acknowledge(ctx.operator, { runs: [run!] }, { undo: false, dryRun: false })
    assert.deepEqual((await marked()).toSorted(), ['gone', 'stalled'])
    await acknowledge(ctx.operator, { runs: [run!] }, { undo: true, dryRun: false })
    assert.deepEqual(await marked(), [])
  })
}

test('reset-failed of a group leaves the others', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
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
  const [run] = (await ctx.store.runs({ limit: 1 })).items

  const { targets } = await resetFailed(ctx.operator, run!.id, { groups: ['TX'] })

  assert.equal(targets, 2)
  assert.deepEqual(
    (await ctx.rows('yp')).map(({ status }) => status),
    ['FAILED', 'PLANNED', 'PLANNED'],
  )
})
