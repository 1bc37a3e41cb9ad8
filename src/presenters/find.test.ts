import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NotFoundError, UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { cancel, resume } from '../operator/actions.ts'
import { createApiClient } from '../testing/api-client.ts'
import { createCliTestContext } from '../testing/cli-test-context.ts'
import { claimOne, enqueueCrawl, enqueueSingle, registerWorker } from '../testing/fixtures.ts'
import { postgresEngine } from '../testing/postgres-engine.ts'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import type { Store } from '../core/store/store.ts'
import { open } from '../index.ts'
import { findRun, findRunOfSource, findRunOrTarget, findRunToChange } from './find.ts'
import { SOURCE_STORE } from '../features/sources/store/store.ts'

async function enqueueCancelled(store: Store, source: string): Promise<RunId> {
  const run = await enqueueCrawl(store, ['a'], { source })
  await cancel({ store, actor: 'the test' }, run)
  return run
}

/** A crawl whose only target is done. */
async function enqueueSucceeded(store: Store, source: string): Promise<RunId> {
  const run = await enqueueCrawl(store, ['a'], { source })
  const worker = await registerWorker(store, { source })
  await store.finish([await claimOne(store, worker, { source })])
  await store.settle()
  return run
}

/** Makes a run of a source that is named like the end of another run's id. */
async function enqueueNamesake(store: Store): Promise<{ run: RunId; ofSource: RunId }> {
  const run = await enqueueCrawl(store, ['a'], { source: 'first' })
  const ofSource = await enqueueSingle(store, shortId(run))
  return { run, ofSource }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('a source stands for its live run, else its last, where a run is read', async () => {
      await using database = await engine.fresh()
      const store = await database.open()
      const older = await enqueueCancelled(store, 'shop')
      const last = await enqueueCancelled(store, 'shop')
      assert.equal((await findRun(store, 'shop')).id, last)

      await resume({ store, actor: 'the test' }, older, false)

      assert.equal((await findRun(store, 'shop')).id, older, 'the live one, though it is older')
      assert.equal((await findRunOrTarget(store, 'shop')).id, older)
      assert.equal((await findRun(store, shortId(last))).id, last, 'an id stands for its run')
    })

    test('a source stands for its live run alone where a run is changed', async () => {
      await using database = await engine.fresh()
      const store = await database.open()
      const ended = await enqueueCancelled(store, 'shop')

      await assert.rejects(findRunToChange(store, 'shop', 'retry'), (error: unknown) => {
        assert.ok(error instanceof NotFoundError)
        assert.match(error.message, /^There is no live run of shop\./)
        assert.ok(error.message.includes(`\`unstuck retry ${shortId(ended)}\``), error.message)
        return true
      })
      await assert.rejects(
        findRunToChange(store, 'shop', 'cancel'),
        new RegExp(`is cancelled: \`unstuck show ${shortId(ended)}\``),
      )
      assert.equal((await findRunToChange(store, ended, 'retry')).id, ended)

      const live = await enqueueCrawl(store, ['a'], { source: 'shop' })
      assert.equal((await findRunToChange(store, 'shop', 'cancel')).id, live)
    })

    test('for resume a source stands for its last run that can be resumed', async () => {
      await using database = await engine.fresh()
      const store = await database.open()
      const resumable = await enqueueCancelled(store, 'shop')
      const last = await enqueueSucceeded(store, 'shop')

      assert.equal((await findRun(store, 'shop')).id, last)
      assert.equal((await findRunToChange(store, 'shop', 'resume')).id, resumable)
    })

    test('a source without a run is known by its pause and its supervisor', async () => {
      await using database = await engine.fresh()
      const store = await database.open()
      const worker = await registerWorker(store, { source: 'mini', leaseMs: 600_000 })
      await store.lockSource({ source: 'mini', worker, killTimeoutMs: 1_000, processTag: 'x' })

      await assert.rejects(
        findRun(store, 'mini'),
        /There is no run of mini yet\. It has not been started\./,
      )

      const sources = await store.extend(SOURCE_STORE)
      await sources.setNextStart('mini', 3_600_000)
      for (const find of [findRunOrTarget, findRunOfSource])
        await assert.rejects(
          find(store, 'mini'),
          /There is no run of mini yet\. Next start in 60 min\./,
        )
      const pause = { source: 'mini', paused: true, actor: 'the tests', because: 'maintenance' }
      await sources.setPaused(pause)
      await assert.rejects(findRun(store, 'mini'), (error: unknown) => {
        assert.ok(error instanceof NotFoundError)
        assert.match(
          error.message,
          /^There is no run of mini yet\. Paused .*: maintenance; next st/,
        )
        return true
      })
    })

    test('where the end of an id and a source both match, both commands are named', async () => {
      await using database = await engine.fresh()
      const store = await database.open()
      const { run, ofSource } = await enqueueNamesake(store)

      for (const find of [findRun, findRunToChange]) {
        await assert.rejects(find(store, shortId(run), 'cancel'), (error: unknown) => {
          assert.ok(error instanceof UsageError)
          assert.ok(error.message.includes(`For the run: \`unstuck cancel ${run}\``), error.message)
          assert.ok(error.message.includes(`For the source: \`unstuck cancel ${ofSource}\``))
          return true
        })
      }
      await assert.rejects(findRunOrTarget(store, shortId(run)), /For the source/)
      assert.equal((await findRun(store, run)).id, run, 'a full id is never ambiguous')
    })
  })
}

test('what is neither an id nor a source is not found, with what was probably meant', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  await enqueueCrawl(store, ['a'], { source: 'directory' })

  await assert.rejects(findRun(store, 'direktory'), /no run or source direktory\. Did you mean dir/)
  await assert.rejects(findRun(store, 'ffffffff'), /There is no run ffffffff\. `unstuck runs`/)
  await assert.rejects(findRun(store, '4f2a'), /An id is given by its last 8 digits/)
  await assert.rejects(findRun(store, 'a\0b'), NotFoundError)
  await assert.rejects(findRun(store, ''), /There is no run or source ""\./)
})

test('the command line takes a source where it takes a run', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueCrawl(ctx.store, ['a'], { source: 'shop' })

  assert.equal((await ctx.json(['show', 'shop'])).run.id, run)
  assert.equal((await ctx.json(['explain', 'shop'])).run.id, run)
  assert.equal((await ctx.json(['progress', 'shop'])).items[0].run.id, run)
  const planned = await ctx.json(['cancel', 'shop', '--dry-run'])
  assert.equal(planned.run.id, run)
  assert.match((await ctx.cli(['cancel', 'shop'])).stdout, /is cancelled/)
  assert.match((await ctx.cli(['cancel', 'shop'], 2)).stderr, /There is no live run of shop/)
  const trail = await ctx.json(['history', 'shop'])
  assert.deepEqual([trail.items[0].run, trail.items[0].action], [run, 'cancel'])
  assert.match((await ctx.cli(['resume', 'shop'])).stdout, /is queued again/)
  const cleaned = await ctx.cli(['clean', 'shop', '--dry-run'], 2)
  assert.match(cleaned.stderr, new RegExp(`Run ${shortId(run)} is not dead`))
})

test('where the end of an id and a source both match, the commands keep the flags of the call', async () => {
  await using ctx = await createCliTestContext()
  const { run, ofSource } = await enqueueNamesake(ctx.store)
  const text = shortId(run)
  for (const [args, expected] of [
    [
      ['cancel', text, '--dry-run', '--because', 'a "typo"'],
      `cancel ${run} --dry-run --because 'a "typo"'`,
    ],
    [['unpark', '--run', text, '--dry-run'], `unpark --run ${run} --dry-run`],
    [['items', 'first', `--run=${text}`, '--limit', '3'], `items first --run=${run} --limit 3`],
    [['clean', 'first', text, '--dry-run'], `clean first ${run} --dry-run`],
  ] as const) {
    const { stderr } = await ctx.cli([...args], 2)
    const words = stderr.replace(/\s+/g, ' ')
    assert.ok(words.includes(`For the run: \`unstuck ${expected}`), words)
    assert.ok(words.includes(`unstuck ${expected.replace(run, ofSource)}`), words)
  }
})

test('the HTTP API takes a source in the path of a run, also one with a slash in it', async () => {
  await using api = await createApiClient()
  const run = await enqueueCrawl(api.ctx.store, ['a'], { source: 'shop/de' })
  const path = `/api/runs/${encodeURIComponent('shop/de')}`

  assert.equal((await api.get(path)).run.id, run)
  assert.equal((await api.get(`${path}/targets`)).items.length, 1)
  assert.equal((await api.get('/api/history?run=shop/de')).items.length, 0)
  assert.equal((await api.post(`${path}/cancel`)).run.id, run)
  assert.match((await api.post(`${path}/cancel`, {}, 404)).error.message, /no live run of shop\/de/)
  assert.equal((await api.post(`${path}/resume`)).run.id, run)
})

test('the library takes a source as { source } or by name', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const resumable = await enqueueCancelled(store, 'shop')
  const last = await enqueueSucceeded(store, 'shop')
  await using unstuck = await open({ db: database.url, config: false, signals: false })

  assert.equal((await unstuck.run({ source: 'shop' })).run.id, last)
  assert.equal((await unstuck.run('shop')).run.id, last)
  await assert.rejects(unstuck.cancel({ source: 'shop' }), /There is no live run of shop/)
  assert.equal((await unstuck.resume({ source: 'shop' })).run?.id, resumable)
})
