import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shortId, type RunId, type TargetId } from '../../../core/model/id.ts'
import type { Policy } from '../../../core/model/policy.ts'
import {
  beginOne,
  claimOne,
  savePage,
  enqueueCrawl,
  enqueueInterrupted,
  registerWorker,
} from '../../../testing/fixtures.ts'
import type { Leftover } from '../../../operator/leftover-processes.ts'
import { NO_RECOVERY, presentRecovery } from '../../../presenters/recovery.ts'
import {
  HOUR_MS,
  noTerminal,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'

type RecoveryFixture = {
  /** Died after a page, with a target of each group in hand. */
  readonly crawl: { run: RunId; ca: TargetId; tx: TargetId }
  /** Died with nothing done. */
  readonly job: { run: RunId; target: TargetId }
  readonly living: { run: RunId; target: TargetId }
}

/** Two orphaned runs, and one whose worker lives. */
async function createRecoveryFixture(
  ctx: CliTestContext,
  policy: Partial<Policy> = {},
): Promise<RecoveryFixture> {
  const { store } = ctx
  const targets = [
    { key: 'a', group: 'CA' },
    { key: 'b', group: 'TX' },
    { key: 'c', group: 'TX' },
  ]
  const run = await enqueueCrawl(store, targets, { source: 'directory', policy })
  const dead = await ctx.registerDeadWorker('directory')
  const [ca, tx] = [
    await claimOne(store, dead, { source: 'directory' }),
    await claimOne(store, dead, { source: 'directory' }),
  ]
  await savePage(store, ca)
  const job = await beginOne(store, await ctx.registerDeadWorker('nightly'), {
    source: 'nightly',
    policy,
  })
  const living = await beginOne(store, await ctx.registerLiveWorker('busy'), { source: 'busy' })
  return { crawl: { run, ca: ca.target, tx: tx.target }, job, living }
}

const namedTargets = ({ verdicts }: any): unknown[] =>
  verdicts.map(({ run, target, action, from, to }: any) => [run, target, action, from, to])

describe('recover', { concurrency: 2 }, () => {
  test('--dry-run lists every live run, then what would be done, and changes nothing', async () => {
    await using ctx = await createCliTestContext()
    const { crawl, job, living } = await createRecoveryFixture(ctx)
    const before = await ctx.dump()

    const { stdout, stderr } = await ctx.cli(['recover', '--dry-run'], 3)

    assert.equal(stderr, '')
    const parts = [
      '3 live runs\nRUN       SOURCE     STATUS   DONE',
      `${shortId(living.run)}  busy`,
      `${shortId(job.run)}  nightly`,
      `${shortId(crawl.run)}  directory`,
      '\nWould be applied\n',
      `- resume target a (${shortId(crawl.ca)}) of directory (in progress → planned): process`,
      `- replan target b (${shortId(crawl.tx)}) of directory (in progress → planned): process`,
      `- retry target ${shortId(job.target)} of nightly (in progress → failed, and a new run is`,
      '\nNothing was changed.\n',
    ]
    const places = parts.map((part) => stdout.indexOf(part))
    assert.ok(!places.includes(-1), `${parts[places.indexOf(-1)]} is not in\n${stdout}`)
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    )
    assert.equal(await ctx.dump(), before)
  })

  test('piped it applies what the dry run listed, and never touches live workers', async () => {
    await using ctx = await createCliTestContext()
    const { crawl, job, living } = await createRecoveryFixture(ctx)
    const planned = await ctx.json(['recover', '--dry-run'], 3)

    const done = await ctx.json(['recover'])

    assert.equal(
      Object.keys(done).join(' '),
      'active activeTotal verdicts total planned applied count processes unreadable note dryRun plan command severity summary sections actions undo',
    )
    assert.equal(
      Object.keys(done.verdicts[0]).join(' '),
      'run source target key action because liveness evidence facts from to outcome blockedBy subject',
    )
    assert.deepEqual([planned.applied, planned.dryRun], [0, true])
    assert.deepEqual([done.applied, done.dryRun], [3, false])
    assert.deepEqual(namedTargets(done), namedTargets(planned))
    assert.equal(done.active.length, 3)
    assert.match(done.verdicts[0].because, /no longer exists/)
    assert.equal(done.verdicts[0].liveness, 'gone')

    const statuses = await Promise.all(
      [crawl.ca, crawl.tx, job.target, living.target].map(
        async (id) => (await ctx.store.target(id))!.status,
      ),
    )
    assert.deepEqual(statuses, ['planned', 'planned', 'failed', 'in_progress'])
    assert.equal((await ctx.store.run(living.run))!.status, 'running')
    assert.equal((await ctx.json(['recover', '--yes'])).verdicts.length, 0)
  })

  test('the undo it prints takes back the retry, and the new run with it', async () => {
    await using ctx = await createCliTestContext()
    const { job } = await createRecoveryFixture(ctx)
    const { stdout } = await ctx.cli(['recover', '-y'])
    assert.match(stdout, /^Applied$/m)
    const undo = /^Undo: `unstuck (revert \w{8})`$/m.exec(stdout)
    assert.equal(undo?.[1], `revert ${shortId(job.run)}`)
    const retry = (await ctx.store.liveRun('nightly'))!
    assert.equal(retry.retryOf, job.run)

    await ctx.cli(undo[1].split(' '))

    assert.equal((await ctx.store.liveRun('nightly'))!.id, job.run)
    assert.equal((await ctx.store.run(retry.id))!.status, 'cancelled')
    assert.equal((await ctx.store.target(job.target))!.status, 'planned')
  })

  test('on a terminal it prompts before it acts', { skip: noTerminal }, async () => {
    await using ctx = await createCliTestContext()
    const { crawl } = await createRecoveryFixture(ctx)
    const before = await ctx.dump()
    const ctrlD = '\x04'
    for (const answer of ['n\n', ctrlD]) {
      const { code, text } = await ctx.runInteractively(['recover'], ['verdicts? [y/N]', answer])
      assert.equal(code, 3, text)
      assert.match(text, /3 live runs.*Would be applied.*Apply these 3 verdicts\? \[y\/N\]/s)
      assert.match(text, /Nothing was changed\.\n$/)
      assert.equal(await ctx.dump(), before)
    }
    const { code, text } = await ctx.runInteractively(['recover'], ['verdicts? [y/N]', 'y\n'])
    assert.equal(code, 0, text)
    assert.match(text, /Applied\n- resume target/)
    assert.equal((await ctx.store.target(crawl.ca))!.status, 'planned')
    const again = await ctx.runInteractively(['recover'])
    assert.match(again.text, /Nothing to recover\.\n$/)
  })

  test(
    'on a terminal it applies what it showed, and reports what changed meanwhile',
    {
      skip: noTerminal,
    },
    async () => {
      await using ctx = await createCliTestContext()
      const { store } = ctx
      const { job } = await createRecoveryFixture(ctx)
      let late: TargetId | null = null
      const changeMeanwhile = async (): Promise<string> => {
        await ctx.cli(['cancel', shortId(job.run)])
        await enqueueCrawl(store, 1, { source: 'late' })
        const dead = await ctx.registerDeadWorker('late')
        late = (await claimOne(store, dead, { source: 'late' })).target
        return 'y\n'
      }

      const { text } = await ctx.runInteractively(['recover'], ['verdicts? [y/N]', changeMeanwhile])

      assert.match(text, /^1 verdict not applied: changed meanwhile/m)
      assert.equal((await store.target(late!))!.status, 'in_progress')
      assert.equal((await ctx.json(['recover', '--yes'], 3)).applied, 1)
    },
  )

  test('it names what else needs attention, and of a selection only what is in it', async () => {
    await using ctx = await createCliTestContext()
    const { store, database } = ctx
    const dry = (...args: string[]) => ctx.cli(['recover', '--dry-run', ...args])
    await enqueueInterrupted(store, 1, { source: 'late' })
    const feed = await enqueueCrawl(store, 1, { source: 'feed' })
    const worker = await registerWorker(store, { source: 'feed' })
    const held = await claimOne(store, worker, { source: 'feed' })
    await store.fail([{ ...held, error: 'HTTP 500', becomes: 'failed' }])
    await store.retireWorker(worker)
    await store.settle(feed)
    await database.advanceClock(3_600_000)
    const both = /Nothing to recover\.\n2 things need attention\. See `unstuck status`\./
    for (const args of [[], ['--source', 'late', 'feed']])
      assert.match((await ctx.cli(['recover', '--dry-run', ...args], 3)).stdout, both)
    assert.match((await ctx.cli(['recover', '--yes'], 3)).stdout, both)
    const one = await ctx.cli(['recover', '--dry-run', '--source', 'feed'], 3)
    assert.match(one.stdout, /recover\.\n1 thing needs attention\./)
    for (const args of [
      ['--source', 'other'],
      ['--timeout', '10m'],
      ['--group', 'CA'],
    ])
      assert.doesNotMatch((await dry(...args)).stdout, /attention/)
    const summary = await ctx.cli(['summary'], 3)
    assert.match(summary.stdout, /late is interrupted: not continued for \d+ min/)
    assert.match(summary.stdout, /1 other thing needs attention\. See `unstuck status`\./)
  })

  test('the command that ends what an earlier copy left is limited as the call was', () => {
    const process = { pid: 7, host: 'box', command: 'python', ageMs: 1_000 }
    const lock = { source: 'stake', worker: 'w' }
    const leftovers = [{ lock, processes: [process] }] as unknown as Leftover[]
    for (const [sources, command] of [
      [['stake'], 'unstuck recover --yes --source=stake'],
      [[], 'unstuck recover --yes'],
    ] as const) {
      const request = { dryRun: false, sources, leftovers, ended: [] }
      const { sections } = presentRecovery(NO_RECOVERY, request)
      assert.ok(JSON.stringify(sections).includes(`\`${command}\` ends them.`))
    }
  })

  test('--source and --group select, and a name that nothing has is remarked on', async () => {
    await using ctx = await createCliTestContext()
    const { crawl, job } = await createRecoveryFixture(ctx)
    const targets = async (...args: string[]): Promise<string[]> =>
      (await ctx.json(['recover', '--dry-run', ...args], 3)).verdicts.map(
        ({ target }: any) => target,
      )
    assert.deepEqual(await targets('--source', 'nightly'), [job.target])
    assert.deepEqual(await targets('--group', 'CA'), [crawl.ca])
    assert.deepEqual(await targets('--source', 'directory', '--group', 'CA', 'TX'), [
      crawl.ca,
      crawl.tx,
    ])

    const { active } = await ctx.json(['recover', '--dry-run', '--source', 'nightly'], 3)
    assert.deepEqual(
      active.map(({ source }: any) => source),
      ['nightly'],
    )
    const { stderr } = await ctx.cli(['recover', '--source', 'nigtly', '--group', 'CB'])
    assert.match(stderr, /^Note: no run of nigtly is live; did you mean nightly\?$/m)
    assert.match(stderr, /^Note: there is no group CB; did you mean CA\?$/m)
    assert.equal((await ctx.store.target(job.target))!.status, 'in_progress')
  })

  test('--timeout: only what had no heartbeat for longer', async () => {
    await using ctx = await createCliTestContext()
    const early = await beginOne(ctx.store, await ctx.registerDeadWorker('early'), {
      source: 'early',
    })
    await ctx.database.advanceClock(2 * HOUR_MS)
    const late = await beginOne(ctx.store, await ctx.registerDeadWorker('late'), { source: 'late' })
    const { verdicts } = await ctx.json(['recover', '--yes', '--timeout', '60m'])
    assert.deepEqual(
      verdicts.map(({ target }: any) => target),
      [early.target],
    )
    assert.equal((await ctx.store.target(late.target))!.status, 'in_progress')
    const { note } = await ctx.json(['recover', '--dry-run', '--timeout', '60m'])
    assert.equal(note, null)
    const below = await ctx.cli(['recover', '--dry-run', '--timeout', '5s'])
    assert.match(below.stdout, /^Note: the timeout of 5 s is below the lease of .* only narrows/m)
    await ctx.cli(['recover', '--timeout', 'soon'], 2)
  })

  test('a silent worker is given time to heartbeat, then recovered', async () => {
    await using ctx = await createCliTestContext()
    const held = await beginOne(ctx.store, await ctx.registerRemoteWorker('job'), { source: 'job' })
    await savePage(ctx.store, held)
    await ctx.database.advanceClock(60_000)
    const { verdicts } = await ctx.json(['recover'])
    assert.deepEqual([verdicts[0].action, verdicts[0].liveness], ['resume', 'silent'])
  })

  test('verdicts that need attention give exit code 3, with the next command', async () => {
    await using ctx = await createCliTestContext()
    const { crawl } = await createRecoveryFixture(ctx, { maxCrashes: 1, onCrash: 'hold' })
    await enqueueInterrupted(ctx.store, 1, { source: 'forgotten' })
    await ctx.database.raw(`UPDATE run SET created_at = created_at - ${25 * HOUR_MS}
      WHERE source = 'forgotten'`)
    const summary = await ctx.cli(['summary'], 3)
    assert.match(
      summary.stdout,
      /^\w{8} of nightly is orphaned: .*no longer exists.* Recover it: `unstuck recover`\.$/m,
    )
    assert.match(
      summary.stdout,
      /^\w{8}: process .* no longer exists .*; onCrash: 'hold' holds .*, and it continues with the others\. Recover it: `unstuck recover`\.$/m,
    )
    const { stdout } = await ctx.cli(['recover', '--yes'], 3)
    assert.match(stdout, /^- hold target a \(\w{8}\) of directory \(in progress → stuck\)/m)
    assert.match(stdout, /^Needs a decision\n- abandon run \w{8} of forgotten/m)
    assert.match(stdout, /^`unstuck clean` marks dead runs\.$/m)
    const held = (await ctx.store.target(crawl.ca))!
    assert.equal(held.status, 'stuck')
    await ctx.cli(['revert', crawl.run])
    assert.equal((await ctx.store.target(crawl.ca))!.status, 'planned')
  })

  test('runs that the policy cleans automatically are cleaned, and the dry run lists them', async () => {
    await using ctx = await createCliTestContext()
    const policy = { autoClean: true }
    const dead = await enqueueInterrupted(ctx.store, 1, { source: 'forgotten', policy })
    await ctx.database.advanceClock(25 * HOUR_MS)
    const { stdout } = await ctx.cli(['recover', '--dry-run'], 3)
    assert.match(stdout, /^Would be applied\n- abandon run \w{8} of forgotten/m)
    assert.doesNotMatch(stdout, /Needs a decision/)
    const { applied } = await ctx.json(['recover'])
    assert.deepEqual([applied, (await ctx.store.run(dead))!.status], [1, 'abandoned'])
  })

  test('where nothing is live there is nothing to do', async () => {
    await using ctx = await createCliTestContext()
    const { severity, summary, active, verdicts, applied } = await ctx.json(['recover'])
    assert.deepEqual([severity, summary], ['ok', 'Nothing to recover.'])
    assert.deepEqual([active, verdicts, applied], [[], [], 0])
  })
})

describe('check', { concurrency: 2 }, () => {
  test('prints start, resume, clean or wait, and exits with 5 only while a live worker holds the run', async () => {
    await using ctx = await createCliTestContext()
    const { store } = ctx
    const left = await beginOne(store, await ctx.registerDeadWorker('left'), { source: 'left' })
    await savePage(store, left, { next: null })
    await enqueueInterrupted(store, 1, { source: 'dead' })
    await ctx.database.advanceClock(25 * HOUR_MS)
    await beginOne(store, await ctx.registerLiveWorker('busy'), { source: 'busy' })
    const actions = await Promise.all(
      (['new', 'left', 'dead', 'busy'] as const).map(async (source) => {
        const data = await ctx.json(['check', source], source === 'busy' ? 5 : 0)
        assert.equal(
          Object.keys(data).join(' '),
          'source action because blockedBy run checkpoint owner paused nextStartAt processes severity summary sections actions undo',
        )
        assert.equal(data.source, source)
        return [data.action, data.run?.source, data.checkpoint?.page, data.owner?.liveness]
      }),
    )
    assert.deepEqual(actions, [
      ['start', undefined, undefined, undefined],
      ['resume', 'left', 1, 'gone'],
      ['clean', 'dead', undefined, undefined],
      ['wait', 'busy', undefined, 'present'],
    ])
    const { stdout } = await ctx.cli(['check', 'left'])
    assert.match(stdout, /^resume: It continues after its last saved page\.$/m)
    assert.match(stdout, /page 1 is saved\.$/m)
    assert.match(stdout, /^Last held by process \d+ on \S+, last heartbeat 25 h ago\.$/m)
    assert.match((await ctx.cli(['check', 'busy'], 5)).stdout, /^Held by process/m)
    assert.equal((await ctx.json(['check', 'dead', '--age', '48h'])).action, 'start')
    await ctx.cli(['check', 'a\tb'], 2)
    await ctx.cli(['check'], 2)
  })
})
