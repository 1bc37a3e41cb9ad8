import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ProcessTestContext, waitFor } from './harness.ts'

const example = (name: string) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))

describe('examples do what they say', { concurrency: 2 }, () => {
  test('own-code.ts continues after the last saved page when it was killed', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const first = ctx.start([example('own-code.ts')])
    await first.waitForOutput('page 5 saved')
    first.signal('SIGKILL')
    await first.waitForExit()
    assert.match(first.output, /check: start, no run of it is live\nstarting at page 1/)

    const second = ctx.start([example('own-code.ts')])
    await second.waitForOutput('page 9 saved')
    await ctx.freeze(second)
    const third = ctx.start([example('own-code.ts')])
    assert.equal(await third.waitForExit(), 5)
    assert.match(third.output, /check: wait, .*\nportal-a is already running/)
    second.signal('SIGCONT')
    assert.equal(await second.waitForExit(), 0)
    assert.match(second.output, /check: resume, .*\ngoing on after page \d+\n[^]*\ndone/)
    const run = await ctx.run('portal-a')
    assert.deepEqual([run.status, run.counts.pages, run.counts.itemsNew], ['succeeded', 20, 60])
  })

  test('resumable-crawl.ts is finished after a kill -9, with each item once', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const first = ctx.unstuck('work', example('resumable-crawl.ts'), '--drain')
    await waitFor('some pages', async () => {
      const { items } = await (await ctx.store()).runs({ source: 'directory', limit: 1 })
      return (items[0]?.counts.pages ?? 0) >= 10
    })
    first.signal('SIGKILL')
    await first.waitForExit()

    const second = ctx.unstuck('work', example('resumable-crawl.ts'), '--drain', '--workers', '2')
    assert.equal(await second.waitForExit(), 0, second.output)
    const run = await ctx.run('directory')
    const { pages, itemsNew, itemsUpdated } = run.counts
    assert.deepEqual([run.status, pages, itemsNew, itemsUpdated], ['succeeded', 60, 180, 0])
    await ctx.assertNoProcessesLeft()
  })
})
