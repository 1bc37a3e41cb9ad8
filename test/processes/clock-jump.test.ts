import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { CLI, ProcessTestContext, type Program } from './harness.ts'

const HOUR = 3_600_000

/** Loaded by every process and thread before anything else: the wall clock as the test has set it. */
const WALL_CLOCK = `
import { readFileSync } from 'node:fs'
const real = Date.now
const byMs = () => { try { return Number(readFileSync(process.env.STAGE + '/wall', 'utf8')) } catch { return 0 } }
Date.now = () => real() + byMs()
`

async function createClockTestContext(): Promise<
  AsyncDisposable & {
    ctx: ProcessTestContext
    setClock(ms: number): void
    run(...args: string[]): Program
  }
> {
  const ctx = await ProcessTestContext.create(sqliteEngine)
  const module = join(ctx.folder, 'wall-clock.mjs')
  writeFileSync(module, WALL_CLOCK)
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(module).href}` }
  return {
    ctx,
    setClock: (ms) => writeFileSync(join(ctx.folder, 'wall'), String(ms)),
    run: (...args) => ctx.start([CLI, ...args], { env }),
    [Symbol.asyncDispose]: () => ctx[Symbol.asyncDispose](),
  }
}

describe('the wall clock is set while workers run, sqlite', { concurrency: 2 }, () => {
  test('back by an hour: a target that waits for its next try does not wait an hour longer', async () => {
    await using host = await createClockTestContext()
    const { ctx } = host
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page() {
        mark('try')
        if (marked('try') === 1) throw new Error('not now')
        return { items: [], next: null }
      },
      policy: { backoff: '3s', backoffMax: '3s' },
    `)
    const worker = host.run('work', crawl, '--drain')
    await worker.waitForOutput('trying again in')
    host.setClock(-HOUR)

    assert.equal(await worker.waitForExit(), 0, worker.output)
    assert.equal((await ctx.run()).status, 'succeeded')
  })

  test('forward by an hour: a page in hand is not taken for one without progress', async () => {
    await using host = await createClockTestContext()
    const { ctx } = host
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page() { mark('page'); await opened('gate'); return { items: [], next: null } },
      policy: { maxSilence: '30m', onStalled: 'resume' },
    `)
    const worker = host.run('work', crawl, '--drain')
    await ctx.waitForMarks('page')
    host.setClock(HOUR)

    const recover = host.run('recover', '--yes', '--json')
    assert.equal(await recover.waitForExit(), 0, recover.output)
    assert.deepEqual((JSON.parse(recover.output) as { verdicts: unknown[] }).verdicts, [])
    ctx.openGate('gate')

    assert.equal(await worker.waitForExit(), 0, worker.output)
    assert.deepEqual(await ctx.verdicts(), [])
    assert.equal((await ctx.target('a')).attempts, 1)
  })
})
