import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { claim, enqueueCrawl, enqueueInterrupted } from '../../../testing/fixtures.ts'
import {
  HOUR_MS,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'

const KILOBYTE = 1_024

function assertShort(stdout: string, kilobytes: number): void {
  const bytes = Buffer.byteLength(stdout)
  assert.ok(bytes < kilobytes * KILOBYTE, `${bytes} bytes:\n${stdout.slice(0, 3_000)}`)
}

/** Runs that were interrupted with nothing done, each of a source of its own. */
async function createForgottenRuns({ store }: CliTestContext, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await enqueueInterrupted(store, 1, { source: `portal-${n}` })
}

describe('output stays short, with exact counts', { concurrency: 2 }, () => {
  test('recover with 10,000 verdicts: grouped before and after, complete in --json', async () => {
    await using ctx = await createCliTestContext()
    for (const [source, targets] of [
      ['directory', 9_000],
      ['shop', 1_000],
    ] as const) {
      await enqueueCrawl(ctx.store, targets, { source })
      await claim(ctx.store, await ctx.registerDeadWorker(source), targets, { source })
    }

    const planned = await ctx.cli(['recover', '--dry-run'], 3)
    assertShort(planned.stdout, 4)
    assert.match(planned.stdout, /^- replan 9000 targets of directory \(in progress → planned\)/m)
    assert.match(planned.stdout, /^- replan 1000 targets of shop \(in progress → planned\)/m)
    assert.match(planned.stdout, /For example t0000 \(\w{8}\), t0001 \(\w{8}\), t0002 \(\w{8}\)\./)
    const { verdicts } = await ctx.json(['recover', '--dry-run'], 3)
    assert.equal(verdicts.length, 10_000)

    const done = await ctx.cli(['recover', '--yes'])
    assertShort(done.stdout, 4)
    assert.match(done.stdout, /^- replan 9000 targets of directory/m)
    assert.match(done.stdout, /^- replan 1000 targets of shop/m)
  })

  test('recover with verdicts on many sources: the largest groups, and how many there are beside them', async () => {
    await using ctx = await createCliTestContext()
    const dead = await ctx.registerDeadWorker('any')
    for (let n = 0; n < 60; n++) {
      const targets = n === 59 ? 3 : 1
      await enqueueCrawl(ctx.store, targets, { source: `portal-${n}` })
      await claim(ctx.store, dead, targets, { source: `portal-${n}` })
    }

    const { stdout } = await ctx.cli(['recover', '--dry-run'], 3)
    assertShort(stdout, 12)
    assert.match(stdout, /^60 live runs$/m)
    assert.match(stdout, /^… and 10 more; `unstuck runs` lists them\.$/m)
    assert.match(stdout, /Would be applied\n- replan 3 targets of portal-59 /)
    assert.match(stdout, /^… and 40 more; `--json` has each of the 62\.$/m)
  })

  test('clean, summary and status with hundreds of dead runs', async () => {
    await using ctx = await createCliTestContext()
    await createForgottenRuns(ctx, 600)
    await ctx.database.advanceClock(25 * HOUR_MS)

    for (const [command, code] of [
      ['status', 3],
      ['summary', 3],
      ['clean', 3],
    ] as const) {
      const flags = command === 'clean' ? ['--dry-run'] : []
      const { stdout } = await ctx.cli([command, ...flags], code)
      assertShort(stdout, 16)
      assert.match(stdout, /600/, command)
      assert.match(stdout, /^… and 5[58]0 more; /m, command)
    }
    assert.equal((await ctx.json(['clean', '--dry-run'], 3)).dead.length, 600)

    const cleaned = await ctx.cli(['clean', '--yes'])
    assertShort(cleaned.stdout, 20)
    assert.match(cleaned.stdout, /^600 runs marked as[^]*^… and 580 more; /m)
    const gone = await ctx.cli(['clean', '--delete', '--dry-run'])
    assertShort(gone.stdout, 8)
    assert.match(gone.stdout, /To be deleted for good: 500 runs/)
    assert.match(gone.stdout, /^… and 450 more; /m)
  })
})
