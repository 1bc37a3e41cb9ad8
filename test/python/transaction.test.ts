import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENGINES, ProcessTestContext } from '../processes/harness.ts'
import { LIBPQ, noLibpq, noPython, workOn } from './python.ts'

/** Rows of one's own in the page's transaction, written by a Python program over libpq. */

for (const engine of ENGINES.filter(({ name }) => name === 'postgres')) {
  for (const [mode, env] of Object.entries({ threads: {}, asyncio: { IS_ASYNC: '1' } })) {
    test(
      `a page and its rows are both saved or neither, ${mode}`,
      {
        skip: noPython || noLibpq,
      },
      async () => {
        await using ctx = await ProcessTestContext.create(engine)
        await ctx.database.raw(
          'CREATE TABLE prices (city varchar(50) NOT NULL, page int NOT NULL, attempt int NOT NULL)',
        )
        ctx.writeConfig({ stage: { retries: 1, backoff: '10ms' } })
        const files = { LIBPQ, PRICES_DB: ctx.database.url }
        const program = workOn(ctx, { program: 'prices.py', env: { ...env, ...files }, workers: 2 })
        const [working] = (await ctx.waitForMarks('working')) as unknown as [{ target: string }]
        const park = ctx.unstuck('park', working.target, '--yes')
        assert.equal(await park.waitForExit(), 0, park.output)
        ctx.openGate('taken')
        await program.waitForExit()

        const rows = await ctx.database.raw(
          "SELECT city, string_agg(page || ':' || attempt, ' ' ORDER BY page) AS pages FROM prices GROUP BY city",
        )
        const written = Object.fromEntries(rows.map(({ city, pages }) => [city, pages]))
        assert.deepEqual(written, {
          'city-0': '1:1 2:1 3:1',
          'city-1': '1:1 2:1 3:1',
          thrown: '1:1 2:2 3:1',
          cut: '1:1 2:1 3:1',
          refused: '1:1',
          lost: '1:1',
          'other page': '1:1 2:1',
          autocommit: '1:1',
        })
        const targets = await ctx.targets()
        const result = (key: string): unknown[] => {
          const { status, page } = targets.get(key)!
          return [status, page]
        }
        for (const key of ['city-0', 'city-1', 'thrown', 'cut'])
          assert.deepEqual(result(key), ['done', 3], key)
        assert.deepEqual(result('refused'), ['failed', 1])
        assert.match(targets.get('refused')!.lastError!, /value too long/)
        assert.deepEqual(result('lost'), ['parked', 1])
        assert.deepEqual(result('other page'), ['failed', 2])
        assert.match(targets.get('other page')!.lastError!, /returned another one/)
        assert.deepEqual(result('autocommit'), ['failed', 1])
        assert.match(targets.get('autocommit')!.lastError!, /is in autocommit mode/)
        // As many items as pages: those of the page that was parked are not in.
        const { counts } = await ctx.run()
        assert.deepEqual([counts.pages, counts.itemsNew], [17, 17])
      },
    )
  }
}
