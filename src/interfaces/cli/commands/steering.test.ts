import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Claimed } from '../../../core/model/claim.ts'
import { shortId, type RunId, type TargetId } from '../../../core/model/id.ts'
import type { RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import { beginOne, claimOne, save, startCrawl, targetOf } from '../../../testing/fixtures.ts'
import { noTerminal, operator, type Operator } from '../../../testing/operator.ts'

async function statusOf({ store }: Operator, run: RunId): Promise<RunStatus> {
  return (await store.run(run))!.status
}

async function targetStatus({ store }: Operator, target: TargetId): Promise<TargetStatus> {
  return (await targetOf(store, target)).status
}

/** The command that a text offers as undo. */
function undoIn(stdout: string): string[] {
  const undo = /^Undo: `unstuck (.+)`$/m.exec(stdout)
  assert.ok(undo, `no undo in: ${stdout}`)
  return undo[1]!.split(' ')
}

/** Nothing in the database is another than before. */
async function unchanged(op: Operator, act: () => Promise<unknown>): Promise<void> {
  const before = await op.dump()
  await act()
  assert.equal(await op.dump(), before)
}

type Ended = { run: RunId; failed: TargetId; parked: TargetId; done: TargetId }

/** A crawl that ended with a target failed after a page, one parked and one done; two groups. */
async function endedCrawl({ store, present }: Operator, source = 'shop'): Promise<Ended> {
  const worker = await present(source)
  const targets = [
    { key: 'a', group: 'CA' },
    { key: 'b', group: 'TX' },
    { key: 'c', group: 'TX' },
  ]
  const run = await startCrawl(store, targets, { source })
  const take = (): Promise<Claimed> => claimOne(store, worker, { source })
  const failed = await save(store, await take())
  await store.fail([{ ...failed, error: 'HTTP 500', retryInMs: null }])
  const parked = await take()
  await store.park([{ ...parked, reason: 'it took down 3 workers' }])
  const done = await save(store, await take())
  await store.finish([await save(store, done, { next: null })])
  await store.settle()
  return { run, failed: failed.target, parked: parked.target, done: done.target }
}

describe('cancel', { concurrency: 2 }, () => {
  test('ends a live run, keeps its data, and its undo brings it back', async () => {
    await using op = await operator()
    const { run, target, worker, claimId } = await beginOne(op.store, await op.present('job'), {
      source: 'job',
    })
    await unchanged(op, async () => {
      const planned = await op.json(['cancel', run, '--dry-run'])
      assert.deepEqual([planned.run.id, planned.run.status, planned.dryRun], [run, 'running', true])
      const { stdout } = await op.call(['cancel', run, '--dry-run'])
      assert.match(stdout, /would be cancelled.*1 target in hand.*Nothing was changed\.\n$/s)
    })

    const { stdout } = await op.call(['cancel', shortId(run), '--because', 'wrong list'])

    assert.match(stdout, /^Run \w{8} of job is cancelled; its data is kept\.$/m)
    assert.match(stdout, /^1 target in hand: work on it stops after the page\.$/m)
    const cancelled = (await op.store.run(run))!
    assert.deepEqual([cancelled.status, cancelled.error], ['cancelled', 'wrong list'])
    const beat = await op.store.beat({ worker, claimIds: [claimId], loopLagMs: 0 })
    assert.deepEqual(beat.cancelled, [claimId], 'its worker hears of it')

    await op.call(undoIn(stdout))
    assert.deepEqual(
      [await statusOf(op, run), await targetStatus(op, target)],
      ['interrupted', 'planned'],
    )
  })

  test('as JSON it is the run and whether it was a dry run; what has ended is refused with 1', async () => {
    await using op = await operator()
    const run = await startCrawl(op.store, 1)
    const { run: shown, ...rest } = await op.json(['cancel', run])
    assert.deepEqual([shown.status, rest], ['cancelled', { dryRun: false }])
    await unchanged(op, async () => {
      for (const more of [[], ['--dry-run']]) {
        const { stdout, stderr } = await op.call(['cancel', run, '--json', ...more], 1)
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
  test('opens an ended run: what failed goes on from its page, what is parked stays', async () => {
    await using op = await operator()
    const { run, failed, parked } = await endedCrawl(op)
    await unchanged(op, async () => {
      const { stdout } = await op.call(['resume', run, '--dry-run'])
      assert.match(stdout, /^Run \w{8} of shop, which is failed, would be opened again\.$/m)
      assert.match(stdout, /^1 failed or held target would be put back in line\.$/m)
      assert.match(stdout, /^Nothing was changed\.$/m)
    })
    const planned = await op.json(['resume', run, '--dry-run'])

    const { run: shown, ...rest } = await op.json(['resume', run])

    assert.deepEqual(rest, { targets: 1, reopened: true, dryRun: false })
    assert.deepEqual([planned.targets, planned.reopened], [rest.targets, rest.reopened])
    assert.equal(shown.status, 'interrupted')
    const back = await targetOf(op.store, failed)
    assert.deepEqual([back.status, back.page], ['planned', 1])
    assert.equal(await targetStatus(op, parked), 'parked')
    const { stdout } = await op.call(['resume', run])
    assert.match(stdout, /is interrupted already: there is nothing to open again\./)
  })

  test('the way back that it names ends it again', async () => {
    await using op = await operator()
    const { run } = await endedCrawl(op)
    const { stdout } = await op.call(['resume', run])
    const back = /^To end it again: `unstuck (.+)`$/m.exec(stdout)
    await op.call(back![1]!.split(' '))
    assert.equal(await statusOf(op, run), 'cancelled')
  })

  test('is refused with 1 where nothing or only parked work is left, and with 5 beside a newer run', async () => {
    await using op = await operator()
    const { store } = op
    const done = await beginOne(store, await op.present('job'), { source: 'job' })
    await store.finish([done])
    await store.settle()
    const parked = await startCrawl(store, 1, { source: 'parked' })
    const claimed = await claimOne(store, await op.present('parked'), { source: 'parked' })
    await store.park([{ ...claimed, reason: 'x' }])
    await store.settle()
    const old = await endedCrawl(op)
    const newer = await startCrawl(store, 1)
    await unchanged(op, async () => {
      for (const more of [[], ['--dry-run']]) {
        for (const [run, code, why] of [
          [done.run, 1, /is succeeded, and nothing of it is left to do/],
          [parked, 1, new RegExp(`is parked\\..*\`unstuck unpark --run ${shortId(parked)}\``, 's')],
          [old.run, 5, new RegExp(`run ${shortId(newer)}, which is queued`)],
        ] as const) {
          assert.match((await op.call(['resume', run, ...more], code)).stderr, why)
        }
      }
    })
  })
})

describe('retry', { concurrency: 2 }, () => {
  test('of a live run: it is failed, a new one is queued, and the undo takes back both', async () => {
    await using op = await operator()
    const old = await startCrawl(op.store, 2)
    await unchanged(op, async () => {
      const planned = await op.json(['retry', old, '--dry-run'])
      assert.deepEqual(planned, { retryOf: old, run: null, dryRun: true })
      const { stdout } = await op.call(['retry', old, '--dry-run'])
      assert.match(stdout, /^Run \w{8}, queued, would be failed\.$/m)
    })

    const { stdout } = await op.call(['retry', old])

    const next = (await op.store.liveRun('shop'))!
    assert.deepEqual([next.status, next.retryOf], ['queued', old])
    assert.equal(await statusOf(op, old), 'failed')
    await op.call(undoIn(stdout))
    assert.equal(await statusOf(op, next.id), 'cancelled')
    assert.equal((await op.store.liveRun('shop'))!.id, old)
  })

  test('of an ended run: that stays as it is, and the undo ends the new one', async () => {
    await using op = await operator()
    const { run: old } = await endedCrawl(op)
    const data = await op.json(['retry', old])
    assert.deepEqual(
      [data.retryOf, data.run.retryOf, data.run.status, data.dryRun],
      [old, old, 'queued', false],
    )
    await op.call(['cancel', data.run.id])
    const { stdout } = await op.call(['retry', old])
    await op.call(undoIn(stdout))
    assert.equal(await op.store.liveRun('shop'), null)
    assert.equal(await statusOf(op, old), 'failed')
  })

  test('is refused with 5 while somebody has it or a newer run is live, also as a dry run', async () => {
    await using op = await operator()
    const held = await beginOne(op.store, await op.present('job'), { source: 'job' })
    const { run: old } = await endedCrawl(op)
    const newer = await startCrawl(op.store, 1)
    await unchanged(op, async () => {
      for (const more of [[], ['--dry-run']]) {
        assert.match((await op.call(['retry', held.run, ...more], 5)).stderr, /a worker has it/)
        assert.ok((await op.call(['retry', old, ...more], 5)).stderr.includes(shortId(newer)))
      }
    })
  })
})

describe('revert', { concurrency: 2 }, () => {
  test('takes back the last deed, as its dry run said, and the way back ends it again', async () => {
    await using op = await operator()
    const run = await startCrawl(op.store, 1)
    await op.call(['cancel', run])
    await unchanged(op, async () => {
      const planned = await op.json(['revert', run, '--dry-run'])
      assert.deepEqual([planned.run.status, planned.undid], ['cancelled', 'cancel'])
      const { stdout } = await op.call(['revert', run, '--dry-run'])
      assert.match(stdout, /^The cancelling of run \w{8} of shop, which is cancelled, would be/)
    })
    const { run: shown, ...rest } = await op.json(['revert', run])
    assert.equal(shown.status, 'queued')
    assert.deepEqual(rest, { undid: 'cancel', targets: 0, dryRun: false })
    assert.match((await op.call(['revert', run], 1)).stderr, /nothing was done to it since it was/)
    await op.call(['cancel', run])
    const { stdout } = await op.call(['revert', run])
    assert.match(stdout, /^The cancelling of run \w{8} of shop is taken back: it is queued\.$/m)
    assert.match(stdout, /^To end it again: `unstuck cancel \w{8}`$/m)
  })

  test('leaves alone what had been set aside before the run was ended', async () => {
    await using op = await operator()
    await startCrawl(op.store, 2)
    const poison = await claimOne(op.store, await op.present('shop'))
    await op.call(['park', poison.target])
    await op.call(['cancel', poison.run])
    await op.call(['revert', poison.run])
    assert.equal(await targetStatus(op, poison.target), 'parked')
  })

  test('takes back no end that the run has long left behind', async () => {
    await using op = await operator()
    const { run, failed } = await endedCrawl(op)
    await op.store.settle()
    await op.call(['resume', run])
    await op.call(['cancel', run])
    await op.call(['resume', run])
    const again = await claimOne(op.store, await op.present('shop'))
    assert.equal(again.target, failed)
    await op.store.finish([again])
    await op.store.settle()
    assert.equal(await statusOf(op, run), 'failed', 'one of its targets is parked')
    await unchanged(op, async () => {
      const { stderr } = await op.call(['revert', run], 1)
      assert.match(stderr, /the last thing done to it was resume, and it has moved on since/)
    })
  })

  test('is refused with 1 where nothing was done, and with 5 naming the newer run', async () => {
    await using op = await operator()
    const { run } = await endedCrawl(op)
    const untouched = await op.call(['revert', run], 1)
    assert.match(untouched.stderr, /it failed by itself; nothing was done to it/)
    const cancelled = await startCrawl(op.store, 1, { source: 'job' })
    await op.call(['cancel', cancelled])
    const newer = await startCrawl(op.store, 1, { source: 'job' })
    await unchanged(op, async () => {
      for (const more of [[], ['--dry-run']]) {
        const { stderr } = await op.call(['revert', cancelled, ...more], 5)
        assert.match(stderr, new RegExp(`run ${shortId(newer)} of job is queued`))
        assert.match(stderr, new RegExp(`\`unstuck cancel ${shortId(newer)}\``))
      }
    })
  })
})

describe('reset-failed', { concurrency: 2 }, () => {
  test('takes the newest run of each source, and does as its dry run said', async () => {
    await using op = await operator()
    const old = await endedCrawl(op, 'shop')
    const newest = await endedCrawl(op, 'shop')
    const other = await endedCrawl(op, 'portal')
    const items = [
      { run: other.run, source: 'portal', targets: 1, reopened: true },
      { run: newest.run, source: 'shop', targets: 1, reopened: true },
    ]
    await unchanged(op, async () => {
      const planned = await op.json(['reset-failed', '--dry-run'])
      assert.deepEqual(planned, { items, targets: 2, dryRun: true })
      const { stdout } = await op.call(['reset-failed', '--dry-run'])
      assert.match(
        stdout,
        /^- shop: 1 target would be back in line in run \w{8}, which would be open again\.$/m,
      )
    })
    assert.deepEqual(await op.json(['reset-failed', '--yes']), { items, targets: 2, dryRun: false })
    assert.equal(await targetStatus(op, newest.failed), 'planned')
    assert.equal(await targetStatus(op, old.failed), 'failed')
    assert.match((await op.call(['reset-failed'])).stdout, /^No failed target fits\./)
  })

  test('--source, --group and --max-attempts select; a run can be named', async () => {
    await using op = await operator()
    const { run, failed } = await endedCrawl(op)
    await endedCrawl(op, 'portal')
    await op.database.raw(`UPDATE target SET attempts = 4 WHERE id = '${failed}'`)
    const counted = async (...args: string[]): Promise<number> =>
      (await op.json(['reset-failed', '--dry-run', ...args])).targets
    assert.equal(await counted('--source', 'shop'), 1)
    assert.equal(await counted('--max-attempts', '3'), 1, 'the one of the other source')
    assert.equal(await counted(run, '--max-attempts', '4'), 1)
    assert.equal(await counted(run, '--group', 'TX'), 0)
    const { stdout, stderr } = await op.call(['reset-failed', run, '--yes', '--group', 'CB'])
    assert.match(stdout, /^No failed target fits\./)
    assert.match(stderr, /^Note: there is no group CB; did you mean CA\?$/m)
    await op.call(['reset-failed', run, '--source', 'shop'], 2)
    await op.call(['reset-failed', '--max-attempts', '0'], 2)
    await op.call(['reset-failed', run, '--yes'])
    const { status, attempts } = await targetOf(op.store, failed)
    assert.deepEqual([status, attempts], ['planned', 4], 'attempts are never zeroed')
  })

  test('off a terminal it wants --yes; beside a newer run of its source it is refused with 5', async () => {
    await using op = await operator()
    const { run } = await endedCrawl(op)
    await unchanged(op, async () => {
      const { stderr } = await op.call(['reset-failed'], 2)
      assert.match(stderr, /Put 1 failed target of 1 run back in line\?.*add --yes/)
    })
    const newer = await startCrawl(op.store, 1)
    await unchanged(op, async () => {
      const { stderr } = await op.call(['reset-failed', run, '--yes'], 5)
      assert.ok(stderr.includes(shortId(newer)))
    })
  })

  test('on a terminal it asks', { skip: noTerminal }, async () => {
    await using op = await operator()
    const { failed } = await endedCrawl(op)
    await unchanged(op, async () => {
      const { code, text } = await op.type(['reset-failed'], ['[y/N]', 'n\n'])
      assert.equal(code, 0, text)
      assert.match(text, /Nothing was changed\.\n$/)
    })
    await op.type(['reset-failed'], ['[y/N]', 'y\n'])
    assert.equal(await targetStatus(op, failed), 'planned')
  })
})

describe('park and unpark', { concurrency: 2 }, () => {
  test('a target is set aside, whoever has it, and the undo of each is the other', async () => {
    await using op = await operator()
    const run = await startCrawl(op.store, ['a', 'b'])
    const held = await claimOne(op.store, await op.present('shop'))
    await unchanged(op, async () => {
      const planned = await op.json(['park', held.target, '--dry-run'])
      assert.deepEqual([planned.parked, planned.dryRun], [0, true])
      const { stdout } = await op.call(['park', held.target, '--dry-run'])
      assert.match(stdout, /^- \w{8} a: would be parked\.\nNothing was changed\.\n$/)
    })

    const twice = [shortId(held.target), held.target]
    const { stdout } = await op.call(['park', ...twice, '--because', 'the city has moved'])
    assert.match(stdout, /^- \w{8} a: is parked\.\nUndo: .*\n$/)
    const parked = await targetOf(op.store, held.target)
    assert.deepEqual([parked.status, parked.lastError], ['parked', 'the city has moved'])
    await assert.rejects(save(op.store, held), { code: 'E_LEASE_LOST' })

    await unchanged(op, async () => {
      assert.deepEqual(await op.json(['unpark', held.target, '--dry-run']), {
        items: [{ run, targets: 1, reopened: false }],
        targets: 1,
        dryRun: true,
      })
    })
    const back = await op.call(undoIn(stdout))
    assert.equal(await targetStatus(op, held.target), 'planned')
    await op.call(undoIn(back.stdout))
    assert.equal(await targetStatus(op, held.target), 'parked')
  })

  test('the last open target takes its run with it, and brings it back', async () => {
    await using op = await operator()
    const run = await startCrawl(op.store, ['a'])
    const { target } = await claimOne(op.store, await op.present('shop'))
    const { stdout } = await op.call(['park', target])
    assert.match(stdout, /^Nothing else was open in run \w{8}: it is failed now\.$/m)
    assert.equal(await statusOf(op, run), 'failed')
    const data = await op.json(['unpark', '--run', run])
    assert.deepEqual(data.items, [{ run, targets: 1, reopened: true }])
    assert.equal(await statusOf(op, run), 'interrupted')
  })

  test('what is done stays done, and what is not parked stays as it is', async () => {
    await using op = await operator()
    const { run, done, failed } = await endedCrawl(op)
    await unchanged(op, async () => {
      const { stdout } = await op.call(['park', done])
      assert.match(stdout, /^- \w{8} c: stays as it is, done\.\nNothing was changed\.\n$/)
      const unparked = await op.call(['unpark', failed])
      assert.match(unparked.stdout, /^- \w{8} a: stays as it is, failed\.\nNothing is parked/)
      assert.equal((await op.json(['unpark', '--run', run, '--group', 'CA'])).targets, 0)
    })
    const data = await op.json(['park', failed])
    assert.deepEqual(
      [data.items.map(({ id, status }: any) => [id, status]), data.parked, data.dryRun],
      [[[failed, 'parked']], 1, false],
    )
  })

  test('wrong calls end with 2, and an unpark beside a newer run with 5', async () => {
    await using op = await operator()
    const { run, parked } = await endedCrawl(op)
    const newer = await startCrawl(op.store, 1)
    await unchanged(op, async () => {
      for (const args of [
        ['park'],
        ['park', 'ffffffff'],
        ['unpark'],
        ['unpark', parked, '--run', run],
        ['unpark', parked, '--group', 'CA'],
      ]) {
        await op.call(args, 2)
      }
      for (const more of [[], ['--dry-run']]) {
        const { stderr } = await op.call(['unpark', parked, ...more], 5)
        assert.ok(stderr.includes(shortId(newer)))
      }
    })
  })
})

describe('rewind', { concurrency: 2 }, () => {
  test('moves a cursor back, and whoever has the target loses it', async () => {
    await using op = await operator()
    const run = await startCrawl(op.store, ['a'])
    let held = await claimOne(op.store, await op.present('shop'))
    for (let page = 0; page < 3; page++) held = await save(op.store, held)
    const next = 'https://shop.example/?page=2'
    const to = ['--to', '1', '--next', next, '--cursor', '{"seen":[1]}']
    await unchanged(op, async () => {
      const { stdout } = await op.call(['rewind', held.target, ...to, '--dry-run'])
      assert.match(stdout, /^\w{8} a would go back from page 3 to 1: page 2 would be fetched next/m)
      assert.match(stdout, /^Who works on it now would lose it\.$/m)
    })

    const data = await op.json(['rewind', held.target, ...to])

    assert.equal(Object.keys(data).join(' '), 'target from to reopened dryRun')
    assert.deepEqual([data.from, data.to, data.reopened, data.dryRun], [3, 1, false, false])
    const { status, page, next: then, cursor } = await targetOf(op.store, held.target)
    assert.deepEqual([status, page, then, cursor], ['planned', 1, next, { seen: [1] }])
    await assert.rejects(save(op.store, held), { code: 'E_LEASE_LOST' })
    assert.equal((await op.store.run(run))!.counts.pages, 3, 'what was saved stays saved')
  })

  test('a done target is crawled again from the start, and its run is open again', async () => {
    await using op = await operator()
    const { run, done } = await endedCrawl(op)
    const { stdout } = await op.call(['rewind', done, '--to', '0'])
    assert.match(stdout, /^\w{8} c is back from page 2 to 0: page 1 is fetched next\.$/m)
    assert.match(stdout, /^Run \w{8} is open again\.$/m)
    assert.deepEqual(
      [await targetStatus(op, done), await statusOf(op, run)],
      ['planned', 'interrupted'],
    )
  })

  test('a run that goes by page numbers needs no address', async () => {
    await using op = await operator()
    let job = await beginOne(op.store, await op.present('job'), { source: 'job' })
    for (let page = 0; page < 3; page++) job = await save(op.store, job, { next: null })
    await op.call(['rewind', job.target, '--to', '2'])
    assert.equal((await targetOf(op.store, job.target)).page, 2)
  })

  test('refuses what would lead astray, with the reason, also as a dry run', async () => {
    await using op = await operator()
    const { done, failed } = await endedCrawl(op)
    await unchanged(op, async () => {
      for (const more of [[], ['--dry-run']]) {
        for (const [args, code, why] of [
          [[failed], 2, /To which page\? Add --to PAGE/],
          [[failed, '--to', '2'], 2, /stands at page 1: it can only go back/],
          [[failed, '--to', '1'], 2, /stands at page 1 already/],
          [[failed, '--to', '0', '--cursor', '{a'], 2, /--cursor must be JSON, not "\{a"/],
          [[failed, '--to', '0', '--next', ''], 2, /--next must be an address/],
          [[done, '--to', '1'], 1, /address of page 2 is not kept.*--next URL/s],
        ] as const) {
          assert.match((await op.call(['rewind', ...args, ...more], code)).stderr, why)
        }
      }
    })
    await startCrawl(op.store, 1)
    for (const more of [[], ['--dry-run']]) {
      await op.call(['rewind', done, '--to', '0', ...more], 5)
    }
  })
})
