import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { shortId } from '../../../core/model/id.ts'
import {
  beginOne,
  claimOne,
  savePage,
  enqueueCrawl,
  enqueueInterrupted,
  getTarget,
} from '../../../testing/fixtures.ts'
import {
  HOUR_MS,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'

const EXPLAINED =
  'run target cause verdict owner evidence facts policy changes trail severity summary sections actions undo'

/** What stands under each heading. */
async function explained(ctx: CliTestContext, id: string): Promise<Record<string, string>> {
  const { stdout, stderr } = await ctx.cli(['explain', shortId(id)])
  assert.equal(stderr, '')
  const [first = '', ...parts] = stdout.split(/\n\n/)
  const headed = parts.map((part) => {
    const end = part.indexOf('\n')
    return [
      part.slice(0, end),
      part
        .slice(end + 1)
        .replaceAll('\n', ' ')
        .trim(),
    ]
  })
  return { it: first.replaceAll('\n', ' '), ...Object.fromEntries(headed) }
}

describe('explain', { concurrency: 2 }, () => {
  test('a run and a target at work', async () => {
    await using ctx = await createCliTestContext()
    const run = await enqueueCrawl(ctx.store, [{ key: 'ca/plumbers', group: 'CA' }])
    const claimed = await claimOne(ctx.store, await ctx.registerLiveWorker('shop'))
    await savePage(ctx.store, claimed, { pageTarget: 7 })

    const ofRun = await explained(ctx, run)
    assert.match(
      ofRun['it']!,
      /^Run \w{8} of shop: running\. It is .* old: 0\/1 done, 1 page saved/,
    )
    assert.match(
      ofRun['What is known']!,
      /^Process \d+ on .* is alive: last heartbeat (.* ago|just now)\. /,
    )
    assert.match(ofRun['Verdict']!, /^leave: process \d+ on \S+ is alive/)
    assert.match(ofRun['What would change it']!, /If it saves nothing for another 15 min/)
    assert.match(ofRun['Settings that apply']!, /maxSilence +15m +default/)

    const ofTarget = await explained(ctx, claimed.target)
    assert.match(ofTarget['it']!, /^Target \w{8}, ca\/plumbers, of group CA: in progress\./)
    assert.match(ofTarget['it']!, /Page 1 of 7 is its last saved one; 1 attempt, 0 workers lost/)

    const data = await ctx.json(['explain', claimed.target])
    assert.equal(Object.keys(data).join(' '), EXPLAINED)
    assert.deepEqual(
      [data.run.id, data.target.id, data.verdict.action, data.owner.liveness, data.facts.process],
      [run, claimed.target, 'leave', 'present', 'alive'],
    )
    assert.deepEqual(data.policy[0], {
      name: 'lease',
      group: null,
      value: '15s',
      origin: 'default',
    })
  })

  test('a worker without progress is reported as stalled, for the run and its target', async () => {
    await using ctx = await createCliTestContext()
    const { run, target, claimId, worker } = await beginOne(
      ctx.store,
      await ctx.registerLiveWorker('job'),
      {
        source: 'job',
      },
    )
    await ctx.database.advanceClock(HOUR_MS)
    await ctx.store.heartbeat({ worker, claimIds: [claimId], loopLagMs: 0 })
    for (const id of [run, target]) {
      const { verdict, owner } = await ctx.json(['explain', id])
      assert.deepEqual([verdict.action, owner.liveness], ['alert', 'stalled'])
    }
  })

  test('gone: the verdict is the one that recover reaches', async () => {
    await using ctx = await createCliTestContext()
    // Two that look alike and are not: one has taken its worker down with nothing done, one saved a page before.
    const policy = { maxCrashes: 1 }
    await enqueueCrawl(ctx.store, 1, { source: 'poison', policy })
    const dead = await ctx.registerDeadWorker('poison')
    const poison = await claimOne(ctx.store, dead, {
      source: 'poison',
      isIdle: true,
      singleSlot: true,
    })
    const job = await beginOne(ctx.store, await ctx.registerDeadWorker('job'), {
      source: 'job',
      policy,
    })
    await savePage(ctx.store, job)

    const said = new Map<string, string>()
    for (const id of [poison.target, job.target, job.run])
      said.set(id, (await ctx.json(['explain', id])).verdict.action)
    const { verdicts } = await ctx.json(['recover', '--dry-run'], 3)

    const action = (id: string): string => verdicts.find(({ target }: any) => target === id).action
    assert.deepEqual([action(poison.target), action(job.target)], ['park', 'resume'])
    assert.equal(said.get(poison.target), 'park')
    assert.equal(said.get(job.target), 'resume')
    assert.equal(said.get(job.run), 'resume')
    const { 'What is known': known, 'What would change it': changes } = await explained(
      ctx,
      job.run,
    )
    assert.match(
      known!,
      /^Process \d+ on \S+ no longer exists \(last heartbeat (.* ago|just now)\)\. /,
    )
    assert.match(changes!, /`unstuck recover` does it now/)
  })

  test('without an owner: young, dead, with progress, and reopened by an operator', async () => {
    await using ctx = await createCliTestContext()
    const young = await enqueueInterrupted(ctx.store, 1, { source: 'young' })
    assert.match((await explained(ctx, young))['What would change it']!, /counts as dead in 24 h/)
    const kept = await beginOne(ctx.store, await ctx.registerLiveWorker('kept'), { source: 'kept' })
    await ctx.store.release([await savePage(ctx.store, kept)])
    await ctx.store.retireWorker(kept.worker)
    await ctx.database.advanceClock(25 * HOUR_MS)

    const dead = await explained(ctx, young)
    assert.match(dead['What is known']!, /^No worker has it\./)
    assert.match(dead['Verdict']!, /^abandon: no worker has it, 25 h old/)
    assert.match(
      dead['Settings that apply']!,
      /abandonAfter +24h +default autoClean +false +default/,
    )
    assert.match(
      (await explained(ctx, kept.run))['Verdict']!,
      /^resumable: .* it has progress: kept/,
    )

    await ctx.cli(['clean', '--yes'])
    await ctx.cli(['revert', young])
    const reverted = await explained(ctx, young)
    assert.match(reverted['Verdict']!, /^leave: an operator reopened it/)
    assert.match(
      reverted['History, newest first']!,
      /^- (?:now|\d{1,2} s ago): revert \(abandoned → interrupted\): abandon reverted by \S+\. - .*: abandon \(interrupted → abandoned\), by \S+: no worker has it/,
    )
  })

  test('ended: it has no owner even if its source is worked on now, and only an operator reopens it', async () => {
    await using ctx = await createCliTestContext()
    const worker = await ctx.registerLiveWorker('shop')
    const run = await enqueueCrawl(ctx.store, ['a', 'b', 'c'])
    const [failed, parked] = [await claimOne(ctx.store, worker), await claimOne(ctx.store, worker)]
    await ctx.store.fail([{ ...failed, error: 'HTTP 500', becomes: 'failed' }])
    await ctx.store.fail([{ ...parked, error: 'it took down 3 workers', becomes: 'parked' }])
    await ctx.store.finish([await claimOne(ctx.store, worker)])
    await ctx.store.settle()

    const ended = await explained(ctx, run)
    assert.match(ended['it']!, /: failed\. .*Error: HTTP 500/)
    assert.match(ended['What is known']!, /^It ended (?:just now|\d{1,2} s ago)\./)
    assert.equal(
      ended['Cause'],
      '1 target failed, 1 parked: 1 of them with: HTTP 500; 1 of them with: it took down 3 workers.',
    )
    assert.match(ended['What to do']!, /`unstuck reset-failed \w{8}`: failed targets/)
    assert.match(ended['What to do']!, /`unstuck unpark --run=\w{8}`: parked and stuck/)
    const { owner, evidence, policy } = await ctx.json(['explain', run])
    assert.deepEqual([owner, evidence, policy], [null, [], []])
    assert.match((await explained(ctx, failed.target))['What to do']!, /reset-failed/)
  })

  test('a failed run names what its targets failed with, by kind of error, and what starts them again', async () => {
    await using ctx = await createCliTestContext()
    const worker = await ctx.registerLiveWorker('shop')
    const run = await enqueueCrawl(ctx.store, 3)
    for (const n of [1, 2, 3]) {
      const claimed = await claimOne(ctx.store, worker)
      const error = `selector found nothing on https://shop.example/${n}\n    at page (crawl.ts:${n})`
      await ctx.store.fail([{ ...claimed, error, becomes: 'failed' }])
    }
    await ctx.store.settle()
    const cause = /^3 targets failed, all with: selector found nothing on https:\S+\.$/
    const ended = await explained(ctx, run)
    assert.match(ended['Cause']!, cause)
    assert.match(ended['What to do']!, /^- `unstuck reset-failed \w{8}`: failed targets/)
    assert.match(ended['What to do']!, /`unstuck retry \w{8}`: queues a new run/)
    assert.doesNotMatch(Object.values(ended).join(' '), /leave: the run is failed/)

    const data = await ctx.json(['explain', run])
    assert.match(data.cause, cause)
    assert.equal(data.summary, data.cause)
    assert.match((await ctx.cli(['show', run])).stdout, /3 targets failed, all with: selector/)
  })

  test('an interrupted run names the command that continues it', async () => {
    await using ctx = await createCliTestContext()
    const worker = await ctx.registerLiveWorker('shop')
    const run = await enqueueCrawl(ctx.store, 2)
    await ctx.store.release([await savePage(ctx.store, await claimOne(ctx.store, worker))])
    await ctx.store.retireWorker(worker)
    await ctx.store.settle()
    assert.match(
      (await explained(ctx, run))['What would change it']!,
      /^- Start its worker again \(`unstuck work MODULE`\): it continues after the last saved page/,
    )
  })

  test('unowned targets of a live run: planned, failed, parked, done', async () => {
    await using ctx = await createCliTestContext()
    const worker = await ctx.registerLiveWorker('shop')
    await enqueueCrawl(ctx.store, ['a', 'b', 'c', 'd'])
    const [failed, parked, done] = [
      await claimOne(ctx.store, worker),
      await claimOne(ctx.store, worker),
      await claimOne(ctx.store, worker),
    ]
    await ctx.store.fail([{ ...failed, error: 'HTTP 500', becomes: 'failed' }])
    await ctx.store.fail([{ ...parked, error: 'it took down 3 workers', becomes: 'parked' }])
    await ctx.store.finish([done])
    const planned = (await ctx.store.targets(done.run, { statuses: ['planned'], limit: 1 }))
      .items[0]!
    for (const [{ id }, heading, reason, change] of [
      [planned, 'Verdict', 'leave: the target is planned.', /A worker claims it when its turn/],
      [
        await getTarget(ctx.store, failed.target),
        'Cause',
        'It failed: HTTP 500.',
        /`unstuck reset-/,
      ],
      [
        await getTarget(ctx.store, parked.target),
        'Cause',
        'It was parked: it took down 3 workers.',
        /^- `unstuck unpark \w{8}`: puts it back/,
      ],
      [
        await getTarget(ctx.store, done.target),
        'Verdict',
        'leave: the target is done.',
        /`unstuck rewind`/,
      ],
    ] as const) {
      const it = await explained(ctx, id)
      assert.match(it['What is known']!, /^No worker has it\./)
      assert.equal(it[heading], reason)
      const changes = it[heading === 'Cause' ? 'What to do' : 'What would change it']!
      assert.match(changes, change)
      assert.doesNotMatch(changes, /run/)
    }
  })

  test('each setting has its origin: default, preset, the crawl, the config, a group of it', async () => {
    await using ctx = await createCliTestContext()
    const policy = { maxCrashes: 7, groups: { TX: { onCrash: 'fail' as const } } }
    const targets = [
      { key: 'a', group: 'CA' },
      { key: 'b', group: 'TX' },
    ]
    const run = await enqueueCrawl(ctx.store, targets, { policy })
    const dead = await ctx.registerDeadWorker('shop')
    const [ca, tx] = [await claimOne(ctx.store, dead), await claimOne(ctx.store, dead)]
    for (const claimed of [ca, tx]) await savePage(ctx.store, claimed)
    writeFileSync(
      join(ctx.cwd, 'unstuck.config.ts'),
      `export default { preset: 'staging', policies: { shop: { lease: '30s', groups: { CA: { onCrash: 'hold' } } } } }`,
    )
    const settings = async (id: string): Promise<unknown> => {
      const { verdict, policy } = await ctx.json(['explain', id])
      return [
        verdict.action,
        ...policy.map(({ name, group, value, origin }: any) => [name, group, value, origin]),
      ]
    }
    assert.deepEqual(await settings(ca.target), [
      'hold',
      ['maxCrashes', null, 7, 'crawl'],
      ['onCrash', 'CA', 'hold', 'config'],
    ])
    assert.deepEqual(await settings(tx.target), [
      'fail',
      ['staleAfter', null, '15m', 'preset'],
      ['onStale', null, 'fail', 'preset'],
      ['onStalled', null, 'alert', 'default'],
      ['runRetries', null, 1, 'default'],
      ['onCrash', 'TX', 'fail', 'crawl'],
    ])
    const text = (await explained(ctx, ca.target))['Settings that apply']!
    assert.match(text, /onCrash +hold +config, group CA/)
    assert.match((await explained(ctx, run))['Settings that apply']!, /lease +30s +config/)
  })

  test('an id that nothing has is refused with 2 and a way on', async () => {
    await using ctx = await createCliTestContext()
    for (const [id, code, says] of [
      ['ffffffff', 'E_NOT_FOUND', /There is no run or target ffffffff\. `unstuck runs` lists/],
      ['xyz', 'E_NOT_FOUND', /There is no run, target or source xyz\. `unstuck runs` lists/],
    ] as const) {
      const { stdout, stderr } = await ctx.cli(['explain', id, '--json'], 2)
      const { error } = JSON.parse(stderr)
      assert.deepEqual([stdout, error.code], ['', code])
      assert.match(error.message, says)
    }
  })
})
