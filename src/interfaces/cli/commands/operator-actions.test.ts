import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ClaimedTarget } from '../../../core/model/claim.ts'
import { shortId, type RunId, type TargetId } from '../../../core/model/id.ts'
import type { RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import { beginOne, claimOne, savePage, enqueueCrawl, getTarget } from '../../../testing/fixtures.ts'
import {
  noTerminal,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'

async function statusOf({ store }: CliTestContext, run: RunId): Promise<RunStatus> {
  return (await store.run(run))!.status
}

async function targetStatus({ store }: CliTestContext, target: TargetId): Promise<TargetStatus> {
  return (await getTarget(store, target)).status
}

/** The command that a text offers as undo. */
function undoCommandsIn(stdout: string): string[] {
  const undo = /^Undo: `unstuck (.+)`$/m.exec(stdout)
  assert.ok(undo, `no undo in: ${stdout}`)
  return undo[1]!.split(' ')
}

/** Nothing in the database is another than before. */
async function assertUnchanged(ctx: CliTestContext, act: () => Promise<unknown>): Promise<void> {
  const before = await ctx.dump()
  await act()
  assert.equal(await ctx.dump(), before)
}

type Ended = { run: RunId; failed: TargetId; parked: TargetId; done: TargetId }

/** A crawl that ended with a target failed after a page, one parked and one done; two groups. */
async function endedCrawl(
  { store, registerLiveWorker }: CliTestContext,
  source = 'shop',
): Promise<Ended> {
  const worker = await registerLiveWorker(source)
  const targets = [
    { key: 'a', group: 'CA' },
    { key: 'b', group: 'TX' },
    { key: 'c', group: 'TX' },
  ]
  const run = await enqueueCrawl(store, targets, { source })
  const take = (): Promise<ClaimedTarget> => claimOne(store, worker, { source })
  const failed = await savePage(store, await take())
  await store.fail([{ ...failed, error: 'HTTP 500', becomes: 'failed' }])
  const parked = await take()
  await store.fail([{ ...parked, error: 'it took down 3 workers', becomes: 'parked' }])
  const done = await savePage(store, await take())
  await store.finish([await savePage(store, done, { next: null })])
  await store.settle()
  return { run, failed: failed.target, parked: parked.target, done: done.target }
}

describe('cancel', { concurrency: 2 }, () => {
  test('ends a live run, keeps its data, and its undo brings it back', async () => {
    await using ctx = await createCliTestContext()
    const { run, target, worker, claimId } = await beginOne(
      ctx.store,
      await ctx.registerLiveWorker('job'),
      {
        source: 'job',
      },
    )
    await assertUnchanged(ctx, async () => {
      const planned = await ctx.json(['cancel', run, '--dry-run'])
      assert.deepEqual([planned.run.id, planned.run.status, planned.dryRun], [run, 'running', true])
      const { stdout } = await ctx.cli(['cancel', run, '--dry-run'])
      assert.match(stdout, /would be cancelled.*1 target in progress.*Nothing was changed\.\n$/s)
    })

    const { stdout } = await ctx.cli(['cancel', shortId(run), '--because', 'wrong list'])

    assert.match(stdout, /^Run \w{8} of job is cancelled; its data is kept\.$/m)
    assert.match(stdout, /^1 target in progress: its worker stops after the current page\.$/m)
    const cancelled = (await ctx.store.run(run))!
    assert.deepEqual([cancelled.status, cancelled.error], ['cancelled', 'wrong list'])
    const beat = await ctx.store.heartbeat({ worker, claimIds: [claimId], loopLagMs: 0 })
    assert.deepEqual(beat.cancelled, [claimId], 'its worker hears of it')

    await ctx.cli(undoCommandsIn(stdout))
    assert.deepEqual(
      [await statusOf(ctx, run), await targetStatus(ctx, target)],
      ['interrupted', 'planned'],
    )
  })

  test('as JSON it is the result that HTTP sends; what has ended is refused with 1', async () => {
    await using ctx = await createCliTestContext()
    const run = await enqueueCrawl(ctx.store, 1)
    const { run: shown, ...rest } = await ctx.json(['cancel', run])
    assert.equal(Object.keys(rest).join(' '), 'targets count summary sections dryRun undo command')
    assert.deepEqual([shown.status, rest.count, rest.dryRun], ['cancelled', 1, false])
    await assertUnchanged(ctx, async () => {
      for (const more of [[], ['--dry-run']]) {
        const { stdout, stderr } = await ctx.cli(['cancel', run, '--json', ...more], 1)
        assert.equal(stdout, '')
        assert.deepEqual(JSON.parse(stderr).error, {
          code: 'E_REFUSED',
          message: `Run ${shortId(run)} has already ended: it is cancelled.`,
        })
      }
    })
  })
})

describe('resume', { concurrency: 2 }, () => {
  test('opens an ended run: what failed continues from its page, what is parked stays', async () => {
    await using ctx = await createCliTestContext()
    const { run, failed, parked } = await endedCrawl(ctx)
    await assertUnchanged(ctx, async () => {
      const { stdout } = await ctx.cli(['resume', run, '--dry-run'])
      assert.match(stdout, /^Run \w{8} of shop, which is failed, would be opened again\.$/m)
      assert.match(stdout, /^1 failed or stuck target would be put back in the queue\.$/m)
      assert.match(stdout, /^Nothing was changed\.$/m)
    })
    const planned = await ctx.json(['resume', run, '--dry-run'])

    const { run: shown, ...rest } = await ctx.json(['resume', run])

    assert.partialDeepStrictEqual(rest, { targets: 1, reopened: true, dryRun: false })
    assert.deepEqual([planned.targets, planned.reopened], [rest.targets, rest.reopened])
    assert.equal(shown.status, 'interrupted')
    const back = await getTarget(ctx.store, failed)
    assert.deepEqual([back.status, back.page], ['planned', 1])
    assert.equal(await targetStatus(ctx, parked), 'parked')
    const { stdout } = await ctx.cli(['resume', run])
    assert.match(stdout, /is interrupted already: there is nothing to reopen\./)
  })

  test('the way back that it names ends it again', async () => {
    await using ctx = await createCliTestContext()
    const { run } = await endedCrawl(ctx)
    const { stdout } = await ctx.cli(['resume', run])
    const back = /^To end it again: `unstuck (.+)`$/m.exec(stdout)
    await ctx.cli(back![1]!.split(' '))
    assert.equal(await statusOf(ctx, run), 'cancelled')
  })

  test('is refused with 1 where nothing or only parked work is left, and with 5 beside a newer run', async () => {
    await using ctx = await createCliTestContext()
    const { store } = ctx
    const done = await beginOne(store, await ctx.registerLiveWorker('job'), { source: 'job' })
    await store.finish([done])
    await store.settle()
    const parked = await enqueueCrawl(store, 1, { source: 'parked' })
    const claimed = await claimOne(store, await ctx.registerLiveWorker('parked'), {
      source: 'parked',
    })
    await store.fail([{ ...claimed, error: 'x', becomes: 'parked' }])
    await store.settle()
    const old = await endedCrawl(ctx)
    const newer = await enqueueCrawl(store, 1)
    await assertUnchanged(ctx, async () => {
      for (const more of [[], ['--dry-run']]) {
        for (const [run, code, why] of [
          [done.run, 1, /is succeeded, and nothing of it is left to do/],
          [parked, 1, new RegExp(`is parked\\..*\`unstuck unpark --run ${shortId(parked)}\``, 's')],
          [old.run, 5, new RegExp(`already queued: run ${shortId(newer)}`)],
        ] as const) {
          assert.match((await ctx.cli(['resume', run, ...more], code)).stderr, why)
        }
      }
    })
  })
})

describe('retry', { concurrency: 2 }, () => {
  test('of a live run: it is failed, a new one is queued, and the undo reverts both', async () => {
    await using ctx = await createCliTestContext()
    const old = await enqueueCrawl(ctx.store, 2)
    await assertUnchanged(ctx, async () => {
      const planned = await ctx.json(['retry', old, '--dry-run'])
      assert.partialDeepStrictEqual(planned, { retryOf: old, run: null, undo: null, dryRun: true })
      const { stdout } = await ctx.cli(['retry', old, '--dry-run'])
      assert.match(stdout, /^Run \w{8}, queued, would be failed\.$/m)
    })

    const { stdout } = await ctx.cli(['retry', old])

    const next = (await ctx.store.liveRun('shop'))!
    assert.deepEqual([next.status, next.retryOf], ['queued', old])
    assert.equal(await statusOf(ctx, old), 'failed')
    await ctx.cli(undoCommandsIn(stdout))
    assert.equal(await statusOf(ctx, next.id), 'cancelled')
    assert.equal((await ctx.store.liveRun('shop'))!.id, old)
  })

  test('of an ended run: that stays as it is, and the undo ends the new one', async () => {
    await using ctx = await createCliTestContext()
    const { run: old } = await endedCrawl(ctx)
    const data = await ctx.json(['retry', old])
    assert.deepEqual(
      [data.retryOf, data.run.retryOf, data.run.status, data.dryRun],
      [old, old, 'queued', false],
    )
    await ctx.cli(['cancel', data.run.id])
    const { stdout } = await ctx.cli(['retry', old])
    await ctx.cli(undoCommandsIn(stdout))
    assert.equal(await ctx.store.liveRun('shop'), null)
    assert.equal(await statusOf(ctx, old), 'failed')
  })

  test('is rejected with 5 while a worker holds it or a newer run is live, also as a dry run', async () => {
    await using ctx = await createCliTestContext()
    const held = await beginOne(ctx.store, await ctx.registerLiveWorker('job'), { source: 'job' })
    const { run: old } = await endedCrawl(ctx)
    const newer = await enqueueCrawl(ctx.store, 1)
    await assertUnchanged(ctx, async () => {
      for (const more of [[], ['--dry-run']]) {
        assert.match(
          (await ctx.cli(['retry', held.run, ...more], 5)).stderr,
          /already running: run \w{8}\. Wait for it/,
        )
        assert.ok((await ctx.cli(['retry', old, ...more], 5)).stderr.includes(shortId(newer)))
      }
    })
  })
})

describe('revert', { concurrency: 2 }, () => {
  test('reverts the last operation, as its dry run announced, and the undo ends it again', async () => {
    await using ctx = await createCliTestContext()
    const run = await enqueueCrawl(ctx.store, 1)
    await ctx.cli(['cancel', run])
    await assertUnchanged(ctx, async () => {
      const planned = await ctx.json(['revert', run, '--dry-run'])
      assert.deepEqual([planned.run.status, planned.undid], ['cancelled', 'cancel'])
      const { stdout } = await ctx.cli(['revert', run, '--dry-run'])
      assert.match(stdout, /^Would revert "cancel" on run \w{8} of shop, which is cancelled/)
    })
    const { run: shown, ...rest } = await ctx.json(['revert', run])
    assert.equal(shown.status, 'queued')
    assert.partialDeepStrictEqual(rest, { undid: 'cancel', targets: 0, dryRun: false })
    assert.match((await ctx.cli(['revert', run], 1)).stderr, /nothing was done to it since it was/)
    await ctx.cli(['cancel', run])
    const { stdout } = await ctx.cli(['revert', run])
    assert.match(stdout, /^Reverted "cancel" on run \w{8} of shop: it is queued\.$/m)
    assert.match(stdout, /^To end it again: `unstuck cancel \w{8}`$/m)
  })

  test('leaves targets parked that were parked before the run ended', async () => {
    await using ctx = await createCliTestContext()
    await enqueueCrawl(ctx.store, 2)
    const poison = await claimOne(ctx.store, await ctx.registerLiveWorker('shop'))
    await ctx.cli(['park', poison.target])
    await ctx.cli(['cancel', poison.run])
    await ctx.cli(['revert', poison.run])
    assert.equal(await targetStatus(ctx, poison.target), 'parked')
  })

  test('does not revert an ending that the run has since left', async () => {
    await using ctx = await createCliTestContext()
    const { run, failed } = await endedCrawl(ctx)
    await ctx.store.settle()
    await ctx.cli(['resume', run])
    await ctx.cli(['cancel', run])
    await ctx.cli(['resume', run])
    const again = await claimOne(ctx.store, await ctx.registerLiveWorker('shop'))
    assert.equal(again.target, failed)
    await ctx.store.finish([again])
    await ctx.store.settle()
    assert.equal(await statusOf(ctx, run), 'failed', 'one of its targets is parked')
    await assertUnchanged(ctx, async () => {
      const { stderr } = await ctx.cli(['revert', run], 1)
      assert.match(stderr, /the last thing done to it was resume, and it has moved on since/)
    })
  })

  test('is refused with 1 where nothing was done, and with 5 naming the newer run', async () => {
    await using ctx = await createCliTestContext()
    const { run } = await endedCrawl(ctx)
    const untouched = await ctx.cli(['revert', run], 1)
    assert.match(untouched.stderr, /it failed by itself; nothing was done to it/)
    const cancelled = await enqueueCrawl(ctx.store, 1, { source: 'job' })
    await ctx.cli(['cancel', cancelled])
    const newer = await enqueueCrawl(ctx.store, 1, { source: 'job' })
    await assertUnchanged(ctx, async () => {
      for (const more of [[], ['--dry-run']]) {
        const { stderr } = await ctx.cli(['revert', cancelled, ...more], 5)
        assert.match(stderr, new RegExp(`run ${shortId(newer)} of job is queued`))
        assert.match(stderr, new RegExp(`\`unstuck cancel ${shortId(newer)}\``))
      }
    })
  })
})

describe('reset-failed', { concurrency: 2 }, () => {
  test('takes the newest run of each source, and does what its dry run announced', async () => {
    await using ctx = await createCliTestContext()
    const old = await endedCrawl(ctx, 'shop')
    const newest = await endedCrawl(ctx, 'shop')
    const other = await endedCrawl(ctx, 'portal')
    const items = [
      { run: other.run, source: 'portal', targets: 1, reopened: true },
      { run: newest.run, source: 'shop', targets: 1, reopened: true },
    ]
    await assertUnchanged(ctx, async () => {
      const planned = await ctx.json(['reset-failed', '--dry-run'])
      assert.deepEqual(planned, { items, targets: 2, dryRun: true })
      const { stdout } = await ctx.cli(['reset-failed', '--dry-run'])
      assert.match(
        stdout,
        /^1 target of run \w{8} of shop would be back in the queue, and the run would be open again\.$/m,
      )
      assert.match(stdout, /^A reset cannot be reverted\.$/m)
    })
    assert.deepEqual(await ctx.json(['reset-failed', '--yes']), {
      items,
      targets: 2,
      dryRun: false,
    })
    assert.equal(await targetStatus(ctx, newest.failed), 'planned')
    assert.equal(await targetStatus(ctx, old.failed), 'failed')
    assert.match((await ctx.cli(['reset-failed'])).stdout, /^No failed target matches\./)
  })

  test('--source, --group and --max-attempts select; a run can be named', async () => {
    await using ctx = await createCliTestContext()
    const { run, failed } = await endedCrawl(ctx)
    await endedCrawl(ctx, 'portal')
    await ctx.database.raw(`UPDATE target SET attempts = 4 WHERE id = '${failed}'`)
    const counted = async (...args: string[]): Promise<number> =>
      (await ctx.json(['reset-failed', '--dry-run', ...args])).targets
    assert.equal(await counted('--source', 'shop'), 1)
    assert.equal(await counted('--max-attempts', '3'), 1, 'the one of the other source')
    assert.equal(await counted(run, '--max-attempts', '4'), 1)
    assert.equal(await counted(run, '--group', 'TX'), 0)
    const { stdout, stderr } = await ctx.cli(['reset-failed', run, '--yes', '--group', 'CB'])
    assert.match(stdout, /^No failed target matches\./)
    assert.match(stderr, /^Note: there is no group CB; did you mean CA\?$/m)
    await ctx.cli(['reset-failed', run, '--source', 'shop'], 2)
    await ctx.cli(['reset-failed', '--max-attempts', '0'], 2)
    await ctx.cli(['reset-failed', run, '--yes'])
    const { status, attempts } = await getTarget(ctx.store, failed)
    assert.deepEqual([status, attempts], ['planned', 4], 'attempts are never zeroed')
  })

  test('off a terminal it wants --yes; beside a newer run of its source it is refused with 5', async () => {
    await using ctx = await createCliTestContext()
    const { run } = await endedCrawl(ctx)
    await assertUnchanged(ctx, async () => {
      const { stderr } = await ctx.cli(['reset-failed'], 2)
      assert.match(
        stderr,
        /Put 1 failed target of 1 run back in the queue\? This cannot be reverted\..*add --yes/,
      )
    })
    const newer = await enqueueCrawl(ctx.store, 1)
    await assertUnchanged(ctx, async () => {
      const { stderr } = await ctx.cli(['reset-failed', run, '--yes'], 5)
      assert.ok(stderr.includes(shortId(newer)))
    })
  })

  test('on a terminal it prompts', { skip: noTerminal }, async () => {
    await using ctx = await createCliTestContext()
    const { failed } = await endedCrawl(ctx)
    await assertUnchanged(ctx, async () => {
      const { code, text } = await ctx.runInteractively(['reset-failed'], ['[y/N]', 'n\n'])
      assert.equal(code, 0, text)
      assert.match(text, /Nothing was changed\.\n$/)
    })
    await ctx.runInteractively(['reset-failed'], ['[y/N]', 'y\n'])
    assert.equal(await targetStatus(ctx, failed), 'planned')
  })
})

describe('park and unpark', { concurrency: 2 }, () => {
  test('a target is parked, even while claimed, and the undo of each is the other', async () => {
    await using ctx = await createCliTestContext()
    const run = await enqueueCrawl(ctx.store, ['a', 'b'])
    const held = await claimOne(ctx.store, await ctx.registerLiveWorker('shop'))
    await assertUnchanged(ctx, async () => {
      const planned = await ctx.json(['park', held.target, '--dry-run'])
      assert.deepEqual([planned.parked, planned.dryRun], [0, true])
      const { stdout } = await ctx.cli(['park', held.target, '--dry-run'])
      assert.match(stdout, /^1 target would be parked\.\nNothing was changed\.\n$/)
    })

    const twice = [shortId(held.target), held.target]
    const { stdout } = await ctx.cli(['park', ...twice, '--because', 'moved'])
    assert.match(stdout, /^1 target is parked\.\nUndo: .*\n$/)
    const parked = await getTarget(ctx.store, held.target)
    assert.deepEqual([parked.status, parked.lastError], ['parked', 'moved'])
    await assert.rejects(savePage(ctx.store, held), { code: 'E_LEASE_LOST' })

    await assertUnchanged(ctx, async () => {
      assert.deepEqual(await ctx.json(['unpark', held.target, '--dry-run']), {
        items: [{ run, source: 'shop', targets: 1, reopened: false }],
        targets: 1,
        dryRun: true,
      })
    })
    const back = await ctx.cli(undoCommandsIn(stdout))
    assert.equal(await targetStatus(ctx, held.target), 'planned')
    await ctx.cli(undoCommandsIn(back.stdout))
    assert.equal(await targetStatus(ctx, held.target), 'parked')
  })

  test('the last open target takes its run with it, and brings it back', async () => {
    await using ctx = await createCliTestContext()
    const run = await enqueueCrawl(ctx.store, ['a'])
    const { target } = await claimOne(ctx.store, await ctx.registerLiveWorker('shop'))
    const { stdout } = await ctx.cli(['park', target])
    assert.match(stdout, /^No other target of run \w{8} was open: it is failed now\.$/m)
    assert.equal(await statusOf(ctx, run), 'failed')
    const data = await ctx.json(['unpark', '--run', run])
    assert.deepEqual(data.items, [{ run, source: 'shop', targets: 1, reopened: true }])
    assert.equal(await statusOf(ctx, run), 'interrupted')
  })

  test('done targets stay done, and targets that are not parked are unchanged', async () => {
    await using ctx = await createCliTestContext()
    const { run, done, failed } = await endedCrawl(ctx)
    await assertUnchanged(ctx, async () => {
      const { stdout } = await ctx.cli(['park', done])
      assert.match(
        stdout,
        /^0 targets are parked\.\nUnchanged: \w{8} \(done\)\.\nNothing was changed\.\n$/,
      )
      const unparked = await ctx.cli(['unpark', failed])
      assert.match(
        unparked.stdout,
        /^No target is parked or stuck\. Unchanged: \w{8} \(failed\)\.\nNothing was changed/,
      )
      assert.equal((await ctx.json(['unpark', '--run', run, '--group', 'CA'])).targets, 0)
    })
    const data = await ctx.json(['park', failed])
    assert.deepEqual(
      [data.items.map(({ id, status }: any) => [id, status]), data.parked, data.dryRun],
      [[[failed, 'parked']], 1, false],
    )
  })

  test('wrong calls end with 2, and an unpark beside a newer run with 5', async () => {
    await using ctx = await createCliTestContext()
    const { run, parked } = await endedCrawl(ctx)
    const newer = await enqueueCrawl(ctx.store, 1)
    await assertUnchanged(ctx, async () => {
      for (const args of [
        ['park'],
        ['park', 'ffffffff'],
        ['unpark'],
        ['unpark', parked, '--run', run],
        ['unpark', parked, '--group', 'CA'],
      ]) {
        await ctx.cli(args, 2)
      }
      for (const more of [[], ['--dry-run']]) {
        const { stderr } = await ctx.cli(['unpark', parked, ...more], 5)
        assert.ok(stderr.includes(shortId(newer)))
      }
    })
  })
})

describe('rewind', { concurrency: 2 }, () => {
  test('moves a cursor back, and the worker that holds the target loses it', async () => {
    await using ctx = await createCliTestContext()
    const run = await enqueueCrawl(ctx.store, ['a'])
    let held = await claimOne(ctx.store, await ctx.registerLiveWorker('shop'))
    for (let page = 0; page < 3; page++) held = await savePage(ctx.store, held)
    const next = 'https://shop.example/?page=2'
    const to = ['--to', '1', '--next', next, '--cursor', '{"seen":[1]}']
    await assertUnchanged(ctx, async () => {
      const { stdout } = await ctx.cli(['rewind', held.target, ...to, '--dry-run'])
      assert.match(
        stdout,
        /^Target \w{8} a would be rewound from page 3 to page 1: page 2 would be fetched next/m,
      )
      assert.match(stdout, /^The worker that has it now would lose it\.$/m)
    })

    const data = await ctx.json(['rewind', held.target, ...to])

    assert.equal(Object.keys(data).join(' '), 'target from to reopened dryRun')
    assert.deepEqual([data.from, data.to, data.reopened, data.dryRun], [3, 1, false, false])
    const { status, page, next: then, cursor } = await getTarget(ctx.store, held.target)
    assert.deepEqual([status, page, then, cursor], ['planned', 1, next, { seen: [1] }])
    await assert.rejects(savePage(ctx.store, held), { code: 'E_LEASE_LOST' })
    assert.equal((await ctx.store.run(run))!.counts.pages, 3, 'what was saved stays saved')
  })

  test('a done target is crawled again from the start, and its run is open again', async () => {
    await using ctx = await createCliTestContext()
    const { run, done } = await endedCrawl(ctx)
    const { stdout } = await ctx.cli(['rewind', done, '--to', '0'])
    assert.match(
      stdout,
      /^Target \w{8} c is rewound from page 2 to page 0: page 1 is fetched next\.$/m,
    )
    assert.match(stdout, /^Run \w{8} is open again\.$/m)
    assert.deepEqual(
      [await targetStatus(ctx, done), await statusOf(ctx, run)],
      ['planned', 'interrupted'],
    )
  })

  test('a run that goes by page numbers needs no address', async () => {
    await using ctx = await createCliTestContext()
    let job = await beginOne(ctx.store, await ctx.registerLiveWorker('job'), { source: 'job' })
    for (let page = 0; page < 3; page++) job = await savePage(ctx.store, job, { next: null })
    await ctx.cli(['rewind', job.target, '--to', '2'])
    assert.equal((await getTarget(ctx.store, job.target)).page, 2)
  })

  test('refuses what would lead astray, with the reason, also as a dry run', async () => {
    await using ctx = await createCliTestContext()
    const { done, failed } = await endedCrawl(ctx)
    await assertUnchanged(ctx, async () => {
      for (const more of [[], ['--dry-run']]) {
        for (const [args, code, why] of [
          [[failed], 2, /To which page\? Add --to PAGE/],
          [[failed, '--to', '2'], 2, /is at page 1: it can only go back/],
          [[failed, '--to', '1'], 2, /is at page 1 already/],
          [[failed, '--to', '0', '--cursor', '{a'], 2, /--cursor must be JSON, not "\{a"/],
          [[failed, '--to', '0', '--next', ''], 2, /--next must be an address/],
          [[done, '--to', '1'], 1, /address of page 2 is not stored.*--next URL/s],
        ] as const) {
          assert.match((await ctx.cli(['rewind', ...args, ...more], code)).stderr, why)
        }
      }
    })
    await enqueueCrawl(ctx.store, 1)
    for (const more of [[], ['--dry-run']]) {
      await ctx.cli(['rewind', done, '--to', '0', ...more], 5)
    }
  })
})
