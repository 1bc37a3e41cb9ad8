import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  claimOne,
  enqueueCrawl,
  recoverWorker,
  registerWorker,
} from '../../src/testing/fixtures.ts'
import { ENGINES, ProcessTestContext } from './harness.ts'

/** A container that was removed a moment ago: its successor has another host name and cannot see its processes. */
const PREDECESSOR = {
  process: {
    host: 'a1b2c3d4e5f6',
    pid: 7,
    startTicks: 1,
    bootId: 'that of another machine',
    pidNamespace: 'pid:[1]',
  },
  heartbeatMs: 500,
  leaseMs: 600_000,
}

for (const engine of ENGINES) {
  for (const workers of ['1', '2']) {
    test(`${engine.name}: a restarted container with ${workers} workers logs for whom it waits, how long and why`, async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const store = await ctx.store()
      await enqueueCrawl(store, ['a'], { source: 'stage' })
      const old = await registerWorker(store, { ...PREDECESSOR, source: 'stage' })
      await claimOne(store, old, { source: 'stage' })
      const crawl = ctx.crawl('*targets() {}, async page() { return { next: null } }')

      const program = ctx.unstuck('work', crawl, '--drain', '--workers', workers)

      await program.waitForOutput('waiting for process')
      // Instead of waiting for the lease.
      await recoverWorker(store, old)
      assert.equal(await program.waitForExit(), 0, program.output)
      const waits = program.output
        .split('\n')
        .filter((line) => line.includes('waiting for process'))
      assert.equal(waits.length, 1, program.output)
      assert.match(
        waits[0]!,
        /waiting for process 7 on a1b2c3d4e5f6, which holds 1 target: last heartbeat (?:.* ago|just now)\. Whether it has ended cannot be seen from another host or container, so its targets are free when its lease of 10 min is over, in .* at most\. A shorter `lease` in the policy shortens the wait\.$/,
      )
      assert.equal((await ctx.target('a')).status, 'done')
    })
  }

  test(`${engine.name}: a command in a restarted container logs when the lock of its predecessor is free`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const store = await ctx.store()
    const worker = await registerWorker(store, { ...PREDECESSOR, source: 'portal' })
    await store.lockSource({ source: 'portal', worker, killTimeoutMs: 60_000, processTag: 'c' })
    const until =
      /cannot be seen from another host or container, the lock is free in .* \(its lease and kill timeout\)/

    const waiting = ctx.unstuck('run', 'portal', '--if-running', 'wait', '--', 'true')
    const refused = ctx.unstuck('run', 'portal', '--', 'true')
    assert.equal(await refused.waitForExit(), 5, refused.output)
    assert.match(refused.output, until)
    await waiting.waitForOutput('the lock is free in')
    await store.unlockSource({ source: 'portal', worker })
    assert.equal(await waiting.waitForExit(), 0, waiting.output)
    assert.match(waiting.output, until)
  })
}
