import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { cancel } from '../../src/operator/actions.ts'
import { newId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import type { StatementMoment } from '../../src/core/store/statement-channel.ts'
import type { AdoptedOptions, UserRow } from '../../src/features/adopted/mapping.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, insertRows, tenderRuns, ypTargets } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

/** Each statement, and each call of a user's function, that a call of the store makes, in order. */

/** Records statements by name and calls of user functions by the id of their row. */
function recordCalls(aliveResult: boolean) {
  const calls: string[] = []
  const onStatement = (message: unknown): void => {
    const { name, moment } = message as StatementMoment
    if (moment === 'before') calls.push(name)
  }
  subscribe('unstuck:statement', onStatement)
  const userFunction =
    <T>(name: string, result: T) =>
    (row: UserRow): T => {
      calls.push(`${name}(${String(row['id'])})`)
      return result
    }
  const options: Partial<AdoptedOptions> = {
    alive: userFunction('alive', aliveResult),
    checkpoint: userFunction('checkpoint', null),
    onResume: userFunction('onResume', undefined),
  }
  return {
    options,
    async during(work: () => Promise<unknown>): Promise<string> {
      calls.length = 0
      await work()
      return sortAliveCalls(calls).join(' ')
    },
    [Symbol.dispose]: () => unsubscribe('unstuck:statement', onStatement),
  }
}

/** The calls of `alive` begin at a random row. */
function sortAliveCalls(calls: readonly string[]): string[] {
  const isAlive = (call: string | undefined): boolean => call?.startsWith('alive(') === true
  const groups: string[][] = []
  for (const call of calls) {
    if (isAlive(call) && isAlive(groups.at(-1)?.[0])) groups.at(-1)!.push(call)
    else groups.push([call])
  }
  return groups.flatMap((group) => group.sort())
}

test('user functions are called only for live rows on the page, and each list reads a table of runs once', async () => {
  using recorded = recordCalls(true)
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    tenders: {
      table: tenderRuns,
      rows: Array.from({ length: 6 }, (_, n) => ({
        id: n + 1,
        portal_name: `portal ${n + 1}`,
        status: ['running', 'interrupted', 'failed'][n % 3]!,
        started_at: minutesAgo(n + 1),
      })),
      options: recorded.options,
    },
  })
  const { store } = ctx
  const { id } = await ctx.run('tenders', 1)
  const target = (await store.targets(id, { limit: 1 })).items[0]!.id
  const { next } = await store.runs({ limit: 4 })
  const ownRuns = (list: string): string => `snapshot runs:${list} runs:by-id snapshot:end`
  const oneRow = 'adopted:row alive(1) checkpoint(1) adopted:rows'
  const expected: readonly (readonly [() => Promise<unknown>, string])[] = [
    [
      () => store.runs({ limit: 4 }),
      `${ownRuns('all')} adopted:rows alive(1) alive(4) checkpoint(1) checkpoint(2) checkpoint(4) adopted:rows`,
    ],
    [
      () => store.runs({ limit: 4, after: next! }),
      // The store's own runs are at their end.
      'adopted:rows checkpoint(5) adopted:rows',
    ],
    [
      () => store.runs({ limit: 4, statuses: ['failed'] }),
      // The last reads which of the failed are acknowledged.
      `${ownRuns('status')} adopted:counts adopted:statuses adopted:rows adopted:rows`,
    ],
    [
      () => store.runs({ limit: 4, latestFailed: true }),
      `${ownRuns('last-failed')} adopted:rows alive(1) alive(4) checkpoint(1) checkpoint(2) checkpoint(4) checkpoint(5) adopted:rows`,
    ],
    [() => store.run(id), oneRow],
    [() => store.target(target), oneRow],
    [() => store.targets(id, { limit: 4 }), oneRow],
    [() => store.countsByGroup(id), oneRow],
    [() => store.countsByPage(id), oneRow],
    [() => store.runTotals(), 'totals:runs adopted:counts'],
    [() => store.targetTotals(), 'totals:targets'],
    [() => store.deadLetters({ limit: 4 }), 'dead-letters'],
    [
      () => Promise.all([store.liveRuns(), store.observations(), store.holdings()]),
      'runs:live workers workers:holdings adopted:statuses adopted:rows ' +
        'alive(1) alive(4) checkpoint(1) checkpoint(2) checkpoint(4) checkpoint(5) adopted:rows',
    ],
    [
      () => cancel(ctx.operator, id),
      `${oneRow} adopted:open ${oneRow} adopted:intend:begin adopted:intend adopted:intend:commit ` +
        'adopted:sample adopted:begin adopted:change adopted:changed adopted:commit ' +
        'adopted:conclude:begin adopted:settle audit:record adopted:remember adopted:conclude:commit adopted:row',
    ],
  ]
  for (const [work, calls] of expected) assert.equal(await recorded.during(work), calls, `${work}`)
})

test('a page of targets calls user functions for its open rows only, and a recovery writes all intents before the first row', async () => {
  using recorded = recordCalls(false)
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: Array.from({ length: 6 }, (_, n) => ({
        id: n + 1,
        slug: `slug ${n + 1}`,
        status: ['IN_PROGRESS', 'PLANNED', 'FAILED'][n % 3]!,
        claimed_at: minutesAgo(101 + n),
      })),
      options: recorded.options,
    },
  })
  const { store } = ctx
  const [run] = (await store.runs({ limit: 1 })).items
  const { id } = run!
  const target = (await store.targets(id, { limit: 1 })).items[0]!.id
  // The last reads whether it is acknowledged.
  const tableRun = 'adopted:counts adopted:statuses adopted:rows adopted:rows'
  const live =
    'runs:live workers workers:holdings adopted:statuses adopted:rows adopted:counts adopted:rows ' +
    'alive(1) alive(4) checkpoint(1) checkpoint(4) adopted:rows'
  const change = 'adopted:begin adopted:change adopted:changed adopted:commit'
  const conclude = 'adopted:settle audit:record adopted:remember'
  const expected: readonly (readonly [() => Promise<unknown>, string])[] = [
    [() => store.runs({ limit: 4 }), `snapshot runs:all runs:by-id snapshot:end ${tableRun}`],
    [() => store.run(id), tableRun],
    [() => store.target(target), `adopted:row alive(1) checkpoint(1) adopted:rows ${tableRun}`],
    [
      () => store.targets(id, { limit: 4 }),
      `${tableRun} adopted:rows alive(1) alive(4) checkpoint(1) checkpoint(2) checkpoint(4) adopted:rows`,
    ],
    [
      () => store.targets(id, { limit: 4, statuses: ['failed'] }),
      `${tableRun} adopted:counts adopted:statuses adopted:rows adopted:rows`,
    ],
    [() => store.countsByGroup(id), `${tableRun} adopted:counts`],
    [
      () => store.countsByPage(id),
      `${tableRun} adopted:rows alive(1) alive(4) checkpoint(1) checkpoint(2) checkpoint(4) checkpoint(5) adopted:rows`,
    ],
    [() => store.runTotals(), `totals:runs ${tableRun}`],
    [() => store.targetTotals(), 'totals:targets adopted:counts'],
    [
      () => store.deadLetters({ limit: 4 }),
      `dead-letters adopted:counts adopted:statuses adopted:rows ${tableRun} adopted:rows`,
    ],
    [() => Promise.all([store.liveRuns(), store.observations(), store.holdings()]), live],
    [
      () => recover(ctx.operator, { observer: TRUSTED_OBSERVER }),
      `source-locks ${live} adopted:open adopted:row adopted:row ` +
        'adopted:intend:begin adopted:intend adopted:intend adopted:intend:commit ' +
        `${change} ${change} ` +
        `adopted:conclude:begin ${conclude} ${conclude} adopted:conclude:commit ` +
        'onResume(1) onResume(4) adopted:open settle:candidates',
    ],
  ]
  for (const [work, calls] of expected) assert.equal(await recorded.during(work), calls, `${work}`)
})

for (const limit of [1, 3, 8]) {
  test(`pages of ${limit} runs of the store and two tables miss none and repeat none while runs begin in each`, async () => {
    const rows = (status: string) =>
      Array.from({ length: 10 }, (_, n) => ({
        id: n + 1,
        // Two of a table start at the same time, and so does one of the other table.
        started_at: minutesAgo(10 + Math.floor(n / 2)),
        status,
      }))
    await using ctx = await createAdoptedTestContext(sqliteEngine, {
      tenders: {
        table: tenderRuns,
        rows: rows('completed').map((row) => ({ ...row, portal_name: `portal ${row.id}` })),
      },
      courses: {
        table: crawlRuns,
        rows: rows('success').map((row) => ({
          ...row,
          id: `c-${row.id}`,
          course_id: `c ${row.id}`,
        })),
      },
    })
    const { store } = ctx
    const enqueue = async (source: string): Promise<void> => {
      await store.enqueue({ id: newId(), source, kind: 'crawl', policy: DEFAULT_POLICY })
    }
    for (let n = 0; n < 4; n++) await enqueue(`own ${n}`)
    const before = (await store.runs({ limit: 200 })).items.map(({ id }) => id)
    assert.equal(before.length, 24)

    const listed: string[] = []
    for (let after: string | undefined, page = 0; ; page++) {
      const { items, next } = await store.runs({ limit, after })
      listed.push(...items.map(({ id }) => id))
      if (next === null) break
      after = next
      await enqueue(`later ${page}`)
      const at = minutesAgo(0)
      await insertRows(ctx.url, tenderRuns, [
        { portal_name: `later ${page}`, status: 'completed', started_at: at },
      ])
      await insertRows(ctx.url, crawlRuns, [
        { id: `later-${page}`, course_id: 'later', status: 'success', started_at: at },
      ])
    }

    assert.equal(new Set(listed).size, listed.length)
    assert.deepEqual(
      listed.filter((id) => before.includes(id)),
      before,
    )
  })
}
