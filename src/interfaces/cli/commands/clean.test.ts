import assert from 'node:assert/strict'
import { existsSync, lstatSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newId, shortId, type RunId } from '../../../core/model/id.ts'
import { createRunFolder, runFolder } from '../../../lib/files/data-folder.ts'
import {
  itemsOf,
  beginOne,
  claimOne,
  unwrap,
  savePage,
  makeItems,
  enqueueCrawl,
  enqueueInterrupted,
} from '../../../testing/fixtures.ts'
import {
  HOUR_MS,
  noTerminal,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'
import {
  acknowledgeDeadLettersAction,
  cleanAction,
  recoverAction,
} from '../../../presenters/bulk-actions.ts'
import { COMMAND_STORE } from '../../../features/commands/store/store.ts'

const ASSESSED =
  'id source status createdAt startedAt finishedAt lastActivityAt done total extracted unchanged skipped attempt error owner ' +
  'resumable retryOf acknowledged origin action because blockedBy subject checkpoint evidence facts'
const VERDICT =
  'run source target key action because liveness evidence facts from to outcome blockedBy subject'

type CleanFixture = { dead: RunId; alsoDead: RunId; resumable: RunId; live: RunId }

/** Two runs of 25 h that were interrupted with nothing done, one that was released after a page, and one in progress. */
async function createCleanFixture({
  store,
  database,
  registerLiveWorker,
}: CliTestContext): Promise<CleanFixture> {
  const dead = await enqueueInterrupted(store, 3, { source: 'forgotten' })
  const alsoDead = await enqueueInterrupted(store, 2, { source: 'old-portal' })
  const begun = await beginOne(store, await registerLiveWorker('long'), { source: 'long' })
  const saved = await savePage(store, begun, { items: makeItems(0, 5) })
  unwrap((await store.release([saved]))[0]!)
  await store.retireWorker(saved.worker)
  await database.advanceClock(25 * HOUR_MS)
  const live = await enqueueCrawl(store, 2, { source: 'busy' })
  await claimOne(store, await registerLiveWorker('busy'), { source: 'busy' })
  return { dead, alsoDead, resumable: saved.run, live }
}

/** A run whose command was started on this machine, with its files below `base`, and has ended. */
async function createEndedRun(
  { store, registerLiveWorker }: CliTestContext,
  source: string,
  base: string,
): Promise<RunId> {
  const worker = await registerLiveWorker(source)
  const begun = await beginOne(store, worker, { source })
  const { outputDir, logPath } = runFolder(base, begun.run)
  await (
    await store.extend(COMMAND_STORE)
  ).startExecution({
    id: newId(),
    run: begun.run,
    worker,
    host: hostname(),
    command: ['true'],
    outputDir,
    log: logPath,
    startedAt: await store.now(),
    end: null,
  })
  await store.finish([begun])
  await store.settle(begun.run)
  return begun.run
}

async function statusOf({ store }: CliTestContext, run: RunId): Promise<string | undefined> {
  return (await store.run(run))?.status
}

describe('clean', { concurrency: 2 }, () => {
  test('--dry-run shows resumable and dead side by side, ends with 3, and changes nothing', async () => {
    await using ctx = await createCliTestContext()
    const { dead, resumable, live } = await createCleanFixture(ctx)
    const before = await ctx.dump()

    const { stdout, stderr } = await ctx.cli(['clean', '--dry-run'], 3)

    assert.equal(stderr, '')
    assert.match(stdout, /^4 live runs: 1 active, 1 resumable, 2 dead\.$/m)
    assert.match(
      stdout,
      new RegExp(`^${shortId(resumable)}  long +25 h +0/1 +5 +0 +0  page 1 `, 'm'),
    )
    assert.match(stdout, new RegExp(`^${shortId(dead)}  forgotten +25 h +0/3 +0 +0 +0  none `, 'm'))
    assert.match(stdout, new RegExp(`^${shortId(dead)}: no worker has it, 25 h old`, 'm'))
    assert.ok(!stdout.includes(shortId(live)))
    assert.match(stdout, /^Nothing was changed\. 2 dead runs would be marked as/m)
    assert.equal(await ctx.dump(), before)
  })

  test('--yes marks the same as --dry-run named, keeps all data, and each undo undoes', async () => {
    await using ctx = await createCliTestContext()
    const { dead, alsoDead, resumable } = await createCleanFixture(ctx)
    const planned = await ctx.json(['clean', '--dry-run'], 3)

    const data = await ctx.json(['clean', '--yes'])

    assert.equal(
      Object.keys(data).join(' '),
      'total active resumable dead cleaned count dryRun plan command severity summary sections actions undo',
      'the shape is a promise',
    )
    assert.equal(Object.keys(data.dead[0]).join(' '), `${ASSESSED} actions`)
    assert.equal(Object.keys(data.cleaned[0]).join(' '), VERDICT)
    assert.deepEqual([planned.dryRun, planned.cleaned, data.dryRun], [true, [], false])
    assert.deepEqual(
      data.cleaned.map(({ run, action, from, to, outcome }: any) => [
        run,
        action,
        from,
        to,
        outcome,
      ]),
      planned.dead.map(({ id }: any) => [id, 'abandon', 'interrupted', 'abandoned', 'applied']),
    )
    assert.deepEqual(
      data.resumable.map(({ id, action, checkpoint }: any) => [id, action, checkpoint.page]),
      [[resumable, 'resumable', 1]],
    )
    assert.equal((await ctx.store.targets(dead, { limit: 10 })).items.length, 3)

    const { stdout } = await ctx.cli(['clean', '--yes'])
    assert.match(stdout, /^2 live runs: 1 active, 1 resumable, 0 dead\.$/m)
    for (const run of [dead, alsoDead]) {
      assert.equal(await statusOf(ctx, run), 'abandoned')
      await ctx.cli(['revert', shortId(run)])
      assert.equal(await statusOf(ctx, run), 'interrupted')
    }
    await ctx.json(['clean', '--yes'])
    assert.equal(await statusOf(ctx, dead), 'interrupted', 'a person has spoken')
  })

  test('piped without --yes it refuses with 2, names the flag to add, and changes nothing', async () => {
    await using ctx = await createCliTestContext()
    await createCleanFixture(ctx)
    const before = await ctx.dump()
    const { stderr } = await ctx.cli(['clean'], 2)
    assert.match(stderr, /^Error E_USAGE: Mark 2 dead runs.*add --yes, or --dry-run/s)
    const asJson = await ctx.cli(['clean', '--json'], 2)
    assert.equal(asJson.stdout, '')
    assert.equal(JSON.parse(asJson.stderr).error.code, 'E_USAGE')
    assert.equal(await ctx.dump(), before)
  })

  test('with nothing dead there is nothing to ask', async () => {
    await using ctx = await createCliTestContext()
    assert.equal(
      (await ctx.cli(['clean'])).stdout,
      'No run is live: nothing to resume, nothing to clean.\n',
    )
  })

  test(
    'on a terminal it shows the table and asks: no changes nothing, yes marks',
    { skip: noTerminal },
    async () => {
      await using ctx = await createCliTestContext()
      const { dead, alsoDead } = await createCleanFixture(ctx)
      const before = await ctx.dump()
      const ctrlC = '\x03'
      for (const answer of ['\n', ctrlC, 'yo\n']) {
        const { code, text } = await ctx.runInteractively(['clean'], ['[y/N]', answer])
        assert.equal(code, 3, text)
        assert.match(text, /^Dead: no progress, and older than the policy allows$/m)
        assert.match(text, /Mark 2 dead runs as “Timeout – auto-cleaned”\? \[y\/N\]/)
        assert.match(text, /Nothing was changed\.\n$/)
        assert.equal(await ctx.dump(), before)
      }
      const { code, text } = await ctx.runInteractively(['clean'], ['[y/N]', 'y\n'])
      assert.equal(code, 0, text)
      assert.equal(text.match(/Dead:/g)?.length, 1, 'the table is there once')
      for (const run of [dead, alsoDead]) {
        assert.equal(await statusOf(ctx, run), 'abandoned')
        assert.ok(text.includes(`Undo: \`unstuck revert ${shortId(run)}\``))
      }
    },
  )

  test('--age counts instead of the policy, with a warning below 12 h', async () => {
    await using ctx = await createCliTestContext()
    const { dead } = await createCleanFixture(ctx)
    assert.deepEqual((await ctx.json(['clean', '--yes', '--age', '48h'])).cleaned, [])
    await ctx.database.raw(`UPDATE run SET created_at = created_at + 23 * ${HOUR_MS}`)
    assert.deepEqual((await ctx.json(['clean', '--dry-run'])).dead, [])
    const { stdout, stderr } = await ctx.cli(['clean', '--dry-run', '--age', '1h', '--json'], 3)
    assert.match(stderr, /^Warning: --age 60 min is below 12 h: a slow run may look dead\.$/m)
    assert.ok(JSON.parse(stdout).dead.some(({ id }: any) => id === dead))
    assert.match((await ctx.cli(['clean', '--age', 'soon'], 2)).stderr, /--age must be a duration/)
  })

  test('named runs are cleaned and no others; what is not dead is refused with the reason', async () => {
    await using ctx = await createCliTestContext()
    const { dead, alsoDead, resumable, live } = await createCleanFixture(ctx)
    const { cleaned, total } = await ctx.json(['clean', shortId(dead), '--yes'])
    assert.deepEqual([cleaned.map(({ run }: any) => run), total], [[dead], 1])
    assert.equal(await statusOf(ctx, alsoDead), 'interrupted')
    for (const [run, why] of [
      [live, /is not dead: process \d+ on \S+ is alive/],
      [resumable, /is not dead: no worker has it, but it has progress/],
      [dead, /is abandoned: there is nothing to clean/],
      ['ffffffff', /There is no run ffffffff/],
    ] as const) {
      assert.match((await ctx.cli(['clean', run, '--yes'], 2)).stderr, why)
    }
  })
})

describe('clean --delete', { concurrency: 2 }, () => {
  test('names what goes and changes nothing before the words are given', async () => {
    await using ctx = await createCliTestContext()
    const { dead, alsoDead } = await createCleanFixture(ctx)
    const before = await ctx.dump()
    const { stdout } = await ctx.cli(['clean', '--delete', '--dry-run'])
    assert.match(
      stdout,
      /^To be deleted for good: 2 runs\. This cannot be undone\. Their items stay\.$/m,
    )
    assert.ok(stdout.includes(`- ${shortId(dead)} of forgotten, interrupted: 3 targets, 0 pages`))
    assert.ok(
      stdout.includes(`- ${shortId(alsoDead)} of old-portal, interrupted: 2 targets, 0 pages`),
    )
    const piped = await ctx.cli(['clean', '--delete'], 2)
    assert.match(piped.stderr, /there is no terminal to ask on: add --confirm "delete 2 runs"/)
    const wrong = await ctx.cli(['clean', '--delete', '--confirm', 'delete 3 runs'], 2)
    assert.match(wrong.stderr, /--confirm must be "delete 2 runs": nothing was deleted/)
    await ctx.cli(['clean', '--delete', '--yes'], 2)
    await ctx.cli(['clean', '--with-items'], 2)
    await ctx.cli(['clean', '--confirm', 'x'], 2)
    assert.equal(await ctx.dump(), before)
  })

  test('on a terminal the words must be typed', { skip: noTerminal }, async () => {
    await using ctx = await createCliTestContext()
    const { dead } = await createCleanFixture(ctx)
    const before = await ctx.dump()
    const asked = 'to continue:'
    const refused = await ctx.runInteractively(['clean', '--delete', dead], [asked, 'y\n'])
    assert.equal(refused.code, 1, refused.text)
    assert.match(refused.text, /Type “delete 1 run” to continue:/)
    assert.match(refused.text, /The phrase does not match\.\nNothing was deleted\.\n$/)
    assert.equal(await ctx.dump(), before)
    const done = await ctx.runInteractively(['clean', '--delete', dead], [asked, 'delete 1 run\n'])
    assert.equal(done.code, 0, done.text)
    assert.ok(done.text.includes(`- Run ${shortId(dead)} of forgotten with 3 targets is deleted.`))
    assert.equal(await ctx.store.run(dead), null)
  })

  test('a live run cannot be deleted, whatever is confirmed', async () => {
    await using ctx = await createCliTestContext()
    const { live, resumable } = await createCleanFixture(ctx)
    const before = await ctx.dump()
    for (const run of [live, resumable]) {
      const words = ['--delete', '--confirm', 'delete 1 run']
      assert.match((await ctx.cli(['clean', run, ...words], 2)).stderr, /is not dead/)
    }
    assert.equal(await ctx.dump(), before)
  })

  test('items stay, unless --with-items is given, and then those of other runs stay', async () => {
    await using ctx = await createCliTestContext()
    const { store } = ctx
    const worker = await ctx.registerLiveWorker('shop')
    const runs: RunId[] = []
    for (const from of [0, 2]) {
      const begun = await beginOne(store, worker, { source: 'shop' })
      await store.finish([await savePage(store, begun, { items: makeItems(from, 4) })])
      await store.settle(begun.run)
      runs.push(begun.run)
    }
    const [first, second] = runs as [RunId, RunId]

    const planned = await ctx.json(['clean', '--delete', '--with-items', first, '--dry-run'])
    assert.deepEqual(planned, {
      runs: [
        {
          run: first,
          source: 'shop',
          origin: null,
          status: 'succeeded',
          targets: 1,
          items: 2,
          folders: [],
        },
      ],
      deleted: [],
      dryRun: true,
    })
    const confirmed = ['--confirm', 'delete 1 run']
    const { deleted } = await ctx.json(['clean', '--delete', '--with-items', first, ...confirmed])
    assert.deepEqual(deleted, [
      { run: first, source: 'shop', origin: null, targets: 1, items: 2, folders: [] },
    ])
    assert.deepEqual(
      (await itemsOf(store, 'shop')).map(({ run }) => run),
      [second, second, second, second],
    )

    await ctx.json(['clean', '--delete', second, ...confirmed])
    assert.equal((await itemsOf(store, 'shop')).length, 4)
    const [entry] = await store.audit({ newestFirst: true, limit: 1 })
    assert.deepEqual([entry?.action, entry?.run], ['delete', second], 'the trail keeps it')
  })

  test('the files of its command go with it, wherever on this machine they are, and no others', async () => {
    await using ctx = await createCliTestContext()
    const elsewhere = join(ctx.cwd, 'another-project')
    const planned = await createEndedRun(ctx, 'shop', elsewhere)
    const kept = await createEndedRun(ctx, 'shop', elsewhere)
    const here = createRunFolder(ctx.cwd, planned).folder
    const there = createRunFolder(elsewhere, planned).folder
    const other = createRunFolder(elsewhere, kept).folder

    const { stdout } = await ctx.cli(['clean', '--delete', '--dry-run', planned])
    const named = `1 target, 0 pages, its files in ${here}, its files in ${there}\n`
    assert.ok(stdout.includes(named), stdout)
    assert.ok(existsSync(here) && existsSync(there))

    const confirmed = ['--confirm', 'delete 1 run']
    const { runs, deleted } = await ctx.json(['clean', '--delete', planned, ...confirmed])
    assert.deepEqual(
      [runs[0].folders, deleted[0].folders],
      [
        [here, there],
        [here, there],
      ],
    )
    assert.deepEqual([here, there, other].map(existsSync), [false, false, true])
  })

  test('a link in the place of its files stays, as does what it leads to; the code is 3', async () => {
    await using ctx = await createCliTestContext()
    const run = await createEndedRun(ctx, 'shop', ctx.cwd)
    const { folder: neighbour, logPath } = createRunFolder(
      ctx.cwd,
      await createEndedRun(ctx, 'shop', ctx.cwd),
    )
    writeFileSync(logPath, 'kept')
    const link = join(ctx.cwd, 'runs', run)
    symlinkSync(neighbour, link)
    const confirmed = ['--confirm', 'delete 1 run']
    const { stdout, stderr } = await ctx.cli(['clean', '--delete', run, ...confirmed], 3)
    assert.match(stdout, /- Run \w+ of shop with 1 target is deleted\.\n$/)
    assert.match(stderr, /The files of \w+ in .* were not removed: .* leads somewhere else/)
    assert.ok(lstatSync(link).isSymbolicLink() && existsSync(logPath))
    assert.equal(await statusOf(ctx, run), undefined)
  })
})

describe('summary', { concurrency: 2 }, () => {
  test('sorts live runs, and ends with 3 while some need attention', async () => {
    await using ctx = await createCliTestContext()
    const { dead, alsoDead, resumable, live } = await createCleanFixture(ctx)
    const data = await ctx.json(['summary'], 3)
    assert.equal(
      Object.keys(data).join(' '),
      'total active resumable dead ended severity summary sections actions undo',
    )
    const ids = (runs: any[]): string[] => runs.map(({ id }) => id)
    assert.deepEqual(
      [data.total, ids(data.active), ids(data.resumable), ids(data.dead)],
      [4, [live], [resumable], [alsoDead, dead]],
    )
    assert.equal(
      Object.keys(data.active[0].owner).join(' '),
      'worker host pid label startedAt lastHeartbeatAt liveness because',
    )
    assert.equal(Object.keys(data.resumable[0].checkpoint).join(' '), 'page pageTarget')
    assert.equal((await ctx.json(['summary', '--age', '30h'], 3)).dead.length, 0)
  })

  test('a young run with nothing done waits for a worker: there is nothing to resume', async () => {
    await using ctx = await createCliTestContext()
    const begun = await beginOne(ctx.store, await ctx.registerDeadWorker('nightly'), {
      source: 'nightly',
    })
    const { active, resumable } = await ctx.json(['summary'], 3)
    assert.deepEqual([active[0].id, resumable], [begun.run, []])
  })
})

test('the commands that the dashboard shows for many runs are ones that the command line knows', async () => {
  await using ctx = await createCliTestContext()
  await enqueueCrawl(ctx.store, 1)
  const acknowledge = acknowledgeDeadLettersAction({}, { what: 'all', isAcknowledged: true })
  for (const { command } of [cleanAction({}), recoverAction({}), acknowledge]) {
    await ctx.cli([...command.split(' ').slice(1), '--dry-run'])
  }
})
