import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { describe, test } from 'node:test'
import { open, recoverOnStart } from '../../src/index.ts'
import { isLong } from '../../src/testing/length.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { ENGINES, kill, SHORT_LEASE, Stage, until } from './harness.ts'

/** What operators live through, with real processes. */

const HOUR = 3_600_000

/** Begins the run, saves so many pages, says so, and waits for the gate; then it finishes. */
const job = (pages: number, policy: string = SHORT_LEASE): string => `
  const unstuck = await open({ policy: ${policy} })
  const run = await unstuck.begin('job')
  mark('begun', run.id, run.page)
  for (let page = run.page + 1; page <= ${pages}; page++) await run.checkpoint({ page }, ledger('job', page))
  mark('held')
  await opened('gate')
  run.signal.throwIfAborted()
  await run.succeed()
  await unstuck.close()
`

/** Another source at work, whose worker looks after everybody once a second. */
const NEIGHBOUR = `
  export default defineCrawl({
    source: 'neighbour',
    *targets() { yield { key: 'n' } },
    async page() { mark('neighbour'); await opened('neighbour'); return { next: null } },
    policy: { heartbeat: '400ms', lease: '2s', maxSilence: '2s', grace: '0s' },
  })
`

/** The run of this source is that much older: it began earlier, and nothing was saved since. Its beats stay fresh. */
async function age(stage: Stage, source: string, ms: number): Promise<void> {
  const { database } = stage
  const by = stage.engine.name === 'sqlite' ? String(ms) : `interval '${ms} milliseconds'`
  const runs = `(SELECT id FROM ${database.table('run')} WHERE source = '${source}')`
  const shift = (table: string, key: string, columns: readonly string[]): string =>
    `UPDATE ${database.table(table)} SET ${columns.map((name) => `${name} = ${name} - ${by}`).join(', ')} WHERE ${key} IN ${runs}`
  await database.raw(shift('run', 'id', ['created_at', 'started_at', 'planned_at']))
  await database.raw(shift('target', 'run_id', ['last_activity_at', 'claimed_at']))
  await database.raw(shift('tally', 'run_id', ['last_activity_at']))
}

async function cli(
  stage: Stage,
  ...args: string[]
): Promise<{ code: number | null; said: string; data: any }> {
  const env = { UNSTUCK_DB: stage.database.url }
  const { code, stdout, stderr } = await unstuck([...args, '--json'], { cwd: stage.folder, env })
  return { code, said: stdout + stderr, data: stdout === '' ? null : JSON.parse(stdout) }
}

/** A run that was begun 25 hours ago by a process that was killed. */
async function deadJob(stage: Stage, pages: number, policy?: string): Promise<string> {
  const program = stage.start([stage.module('job.ts', job(pages, policy))])
  await stage.marked('held')
  program.signal('SIGKILL')
  await program.end()
  await age(stage, 'job', 25 * HOUR)
  return (await stage.run('job')).id
}

for (const engine of isLong ? ENGINES : [sqliteEngine]) {
  describe(`stories, ${engine.name}`, { concurrency: 2 }, () => {
    test('(a) a container restart: the new worker tells the story, and the run goes on', async () => {
      await using stage = await Stage.set(engine)
      const crawl = stage.crawl(`
        *targets() { yield { key: 'a' }; yield { key: 'b' } },
        async page({ target, page }) {
          mark('page', target.key, page)
          if (page === 2) await opened('second')
          return { next: page < 3 ? 'next' : null, inTransaction: ledger(target.key, page) }
        },
      `)
      const parent = stage.unstuck('work', crawl, '--workers', '2', '--drain')
      await until(
        'both in their second page',
        () => stage.marks('page').filter(({ page }) => page === 2).length === 2,
      )

      parent.signal('SIGTERM')
      await parent.says('finishing the pages in hand')
      // The grace is over before the pages are: the container's processes are killed.
      for (const pid of stage.processes()) kill(pid, 'SIGKILL')
      await parent.end()
      await stage.assertNobodyLeft()
      stage.open('second')
      const next = stage.unstuck('work', crawl, '--drain')

      assert.equal(await next.end(), 0, next.output)
      assert.match(
        next.output,
        /recovery: target \w{8} of stage: resume — process \d+ .*goes on after page 1/,
      )
      assert.match(
        next.output,
        /run \w{8} of stage is (running|interrupted): 2 of 2 targets are left/,
      )
      const run = await stage.run()
      assert.deepEqual([run.status, run.resumes], ['succeeded', 1])
      assert.deepEqual(await stage.ledger(), ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'b/3'])
      assert.equal((await stage.verdicts()).length, 2)
    })

    test('(b) a slow honest run of 26 h with fresh beats and no items is touched by nothing automatic', async () => {
      await using stage = await Stage.set(engine)
      const slow = stage.start([
        stage.module('job.ts', job(0, `{ ...${SHORT_LEASE}, autoClean: true }`)),
      ])
      await stage.marked('held')
      await age(stage, 'job', 26 * HOUR)
      const neighbour = stage.unstuck('work', stage.module('neighbour.ts', NEIGHBOUR))
      await neighbour.says(/ALERT: .* of job: timeout: .* no progress for 26 h/)

      assert.deepEqual((await cli(stage, 'recover', '--yes')).data.applied, 0)
      assert.deepEqual((await cli(stage, 'clean', '--auto', '--age', '12h')).data.cleaned, [])
      const lines: string[] = []
      const { verdicts } = await recoverOnStart({
        db: stage.database.url,
        log: (line) => lines.push(line),
      })
      assert.deepEqual(
        verdicts.filter(({ applied }) => applied),
        [],
      )
      assert.match(
        lines.join('\n'),
        /run \w{8} of job is running: 0\/1 done, 26 h old; process \d+ on .* alive/,
      )
      const check = await cli(stage, 'check', 'job')
      assert.deepEqual(
        [check.code, check.data.action, check.data.heldBy.pid],
        [5, 'wait', slow.pid],
      )

      assert.equal(slow.isAlive, true)
      assert.deepEqual(await stage.verdicts(), [])
      stage.open('gate')
      assert.equal(await slow.end(), 0, slow.output)
      assert.equal((await stage.run('job')).status, 'succeeded')
    })

    test('(c), (e) a dead run of 25 h is abandoned by clean --auto, not with --age 48h; revert brings it back, and it goes on', async () => {
      await using stage = await Stage.set(engine)
      const id = await deadJob(stage, 0)

      const left = await cli(stage, 'clean', '--auto', '--age', '48h')
      assert.deepEqual([left.data.cleaned, left.data.dead], [[], []])
      assert.equal((await stage.run('job')).status, 'running')

      const cleaned = await cli(stage, 'clean', '--auto')
      assert.equal(cleaned.code, 0, cleaned.said)
      assert.deepEqual(
        cleaned.data.cleaned.map((one: any) => [one.run, one.applied]),
        [[id, true]],
      )
      const { status, finishedAt } = await stage.run('job')
      assert.equal(status, 'abandoned')
      assert.ok(finishedAt !== null)

      const reverted = await cli(stage, 'revert', id)
      assert.deepEqual(
        [reverted.code, reverted.data.undid, reverted.data.run.status],
        [0, 'abandon', 'interrupted'],
      )
      assert.deepEqual(
        (await cli(stage, 'clean', '--auto')).data.cleaned.length,
        0,
        'a person has spoken',
      )
      stage.open('gate')
      const again = stage.start([stage.module('again.ts', job(2))])
      assert.equal(await again.end(), 0, again.output)
      const run = await stage.run('job')
      assert.deepEqual([run.id, run.status, run.counts.pages], [id, 'succeeded', 2])
      const trail = (await stage.verdicts()).map(({ action }) => action)
      assert.deepEqual(trail.slice(-2), ['abandon', 'revert'])
    })

    test('(d) a run with a checkpoint is never cleaned, by hand or by itself', async () => {
      await using stage = await Stage.set(engine)
      const id = await deadJob(
        stage,
        1,
        `{ ...${SHORT_LEASE}, autoClean: true, abandonAfter: '1s' }`,
      )

      assert.deepEqual((await cli(stage, 'clean', '--auto', '--age', '1s')).data.cleaned, [])
      assert.equal((await cli(stage, 'clean', id)).code, 2)
      const neighbour = stage.unstuck('work', stage.module('neighbour.ts', NEIGHBOUR))
      await neighbour.says(/recovery: target \w{8} of job: resume/)
      await until('the monitor has looked a few times', () => stage.marks('neighbour').length > 0)
      await new Promise((resolve) => setTimeout(resolve, 2_500))

      assert.equal((await stage.run('job')).status, 'interrupted')
      await using handle = await open({ db: stage.database.url, signals: false })
      await assert.rejects(
        handle.clean(id),
        /is not dead: nobody works on it, but it has progress: kept/,
      )
      const { resumable } = await handle.summary()
      assert.deepEqual(
        resumable.map((run) => [run.id, run.checkpoint?.page]),
        [[id, 1]],
      )
    })

    test('(e) what was cleaned cannot be taken back while a newer run lives, and it says so', async () => {
      await using stage = await Stage.set(engine)
      const id = await deadJob(stage, 0)
      await cli(stage, 'clean', '--auto')
      const program = stage.start([stage.module('next.ts', job(1))])
      await stage.marked('held', 2)

      const refused = await cli(stage, 'revert', id)

      assert.equal(refused.code, 5)
      const next = (await stage.run('job')).id
      assert.ok(refused.said.includes(`run ${next.slice(-8)} of job is running`), refused.said)
      stage.open('gate')
      assert.equal(await program.end(), 0)
    })

    test('(f) P2 fifty processes recover at once: one recovery, one audit row', async () => {
      await using stage = await Stage.set(engine)
      const program = stage.start([stage.module('job.ts', job(2))])
      await stage.marked('held')
      program.signal('SIGKILL')
      await program.end()

      const said = await Promise.all(
        Array.from({ length: 50 }, () => cli(stage, 'recover', '--yes')),
      )

      assert.deepEqual(
        said.filter(({ code }) => code !== 0).map(({ said }) => said),
        [],
      )
      assert.equal(
        said.reduce((sum, { data }) => sum + data.applied, 0),
        1,
      )
      const [entry, ...more] = await stage.verdicts()
      assert.deepEqual([entry?.action, more], ['resume', []])
      assert.equal((await stage.run('job')).status, 'interrupted')
    })

    test('recoverOnStart says each active run and each verdict, and returns them', async () => {
      await using stage = await Stage.set(engine)
      const program = stage.start([stage.module('job.ts', job(2))])
      await stage.marked('held')
      program.signal('SIGKILL')
      await program.end()
      const lines: string[] = []
      const options = { db: stage.database.url, log: (line: string) => lines.push(line) }

      const looked = await recoverOnStart({ ...options, dryRun: true })
      assert.deepEqual(
        looked.verdicts.map(({ action, applied }) => [action, applied]),
        [['resume', false]],
      )
      assert.deepEqual(await stage.verdicts(), [])
      const report = await recoverOnStart(options)

      assert.equal(report.error, null)
      assert.deepEqual(
        report.active.map(({ source }) => source),
        ['job'],
      )
      assert.deepEqual(
        report.verdicts.map(({ action, applied }) => [action, applied]),
        [['resume', true]],
      )
      assert.match(lines.join('\n'), /run \w{8} of job is running: 0\/1 done/)
      assert.match(lines.join('\n'), /recovery: target \w{8} of job: resume — process \d+/)
      assert.equal((await stage.verdicts()).length, 1)
    })

    test('cancel reaches a running worker within seconds: it saves the page in hand and stops', async () => {
      await using stage = await Stage.set(engine)
      const program = stage.unstuck(
        'work',
        stage.crawl(`
          *targets() { yield { key: 'a' } },
          async page({ target, page }) {
            mark('page', target.key, page)
            await sleep(300)
            return { next: 'next', inTransaction: ledger(target.key, page) }
          },
        `),
        '--drain',
      )
      await stage.marked('page', 2)
      const { id } = await stage.run()

      const { code, data } = await cli(stage, 'cancel', id, '--because', 'wrong list')
      assert.deepEqual([code, data.run.status, data.run.error], [0, 'cancelled', 'wrong list'])

      assert.equal(await program.end(), 0, program.output)
      assert.match(program.output, /was ended: finishing the pages in hand/)
      const a = await stage.target('a')
      assert.deepEqual(
        [a.status, a.crashes, a.attempts],
        ['planned', 0, 0],
        'a stop costs it nothing',
      )
      assert.equal((await stage.ledger()).length, a.page, 'the page in hand was saved')
      assert.equal((await stage.run()).status, 'cancelled')
    })

    test('a run that overran is failed for a timeout, and a page that hangs does not keep its worker from the next run', async () => {
      await using stage = await Stage.set(engine)
      const crawl = stage.crawl(`
        *targets() { yield { key: 'a' } },
        async page({ target }) {
          mark('page', target.key)
          if (marked('page') === 1) await opened('never')
          return { next: null }
        },
        policy: { heartbeat: '400ms', lease: '2s', grace: '0s', maxDuration: '2s', onStalled: 'fail' },
      `)
      const program = stage.unstuck('work', crawl)
      await stage.marked('page')
      const first = await stage.run()
      await until('the timeout', async () => (await stage.run()).status === 'failed')
      assert.match(
        (await stage.run()).error!,
        /^timeout: running for \d+ s, longer than maxDuration 2 s/,
      )

      assert.equal((await cli(stage, 'retry', first.id)).code, 0)
      await until('the next run', async () => (await stage.run()).status === 'succeeded')

      assert.match(program.output, /a dropped: .*timeout/)
      assert.deepEqual(
        (await stage.verdicts()).map(({ action }) => action),
        ['fail', 'retry'],
      )
    })

    test('work marks a dead run as abandoned and begins anew, as check had said', async () => {
      await using stage = await Stage.set(engine)
      const crawl = stage.crawl(
        `*targets() { yield { key: 'a' } }, async page() { return { next: null } }`,
      )
      assert.equal((await cli(stage, 'enqueue', crawl)).code, 0)
      await stage.database.later(25 * HOUR)
      const dead = await stage.run()
      assert.equal((await cli(stage, 'check', 'stage')).data.action, 'clean')

      const program = stage.unstuck('work', crawl, '--drain')

      assert.equal(await program.end(), 0, program.output)
      assert.equal((await (await stage.store()).run(dead.id))!.status, 'abandoned')
      const next = await stage.run()
      assert.notEqual(next.id, dead.id)
      assert.equal(next.status, 'succeeded')
      assert.match(program.output, /recovery: run \w{8} of stage: abandon/)
    })

    test('a page that hangs is taken from its living worker for a timeout: tried again, then failed, the rest is done', async () => {
      await using stage = await Stage.set(engine)
      const program = stage.unstuck(
        'work',
        stage.crawl(`
          *targets() { yield { key: 'hangs', group: 'CA' }; yield { key: 'fine', group: 'TX' } },
          async page({ target }) {
            mark('page', target.key)
            if (target.key === 'hangs') await opened('never')
            return { next: null }
          },
          concurrency: 2,
          policy: { heartbeat: '400ms', lease: '2s', grace: '0s', groups: { CA: { maxSilence: '2s', onStalled: 'resume', retries: 1 } } },
        `),
        '--drain',
      )
      assert.equal(await program.end(), 3, program.output)

      const hangs = await stage.target('hangs')
      assert.deepEqual([hangs.status, hangs.crashes, hangs.errors], ['failed', 0, 2])
      assert.match(
        hangs.lastError!,
        /^timeout: process \d+ .* is alive.*no progress for \d+ s, again after 1/,
      )
      assert.equal((await stage.target('fine')).status, 'done')
      assert.match((await stage.run()).error!, /^timeout/)
      assert.match(program.output, /hangs dropped: .*taken back: timeout/)
      assert.equal(stage.marks('page').filter(({ key }) => key === 'hangs').length, 2)
      const trail = (await stage.verdicts()).map(({ action }) => action)
      assert.deepEqual(trail, ['resume', 'fail'])
    })

    test('a monitor cleans what is dead by age only where the policy says so, and else tells people once', async () => {
      await using stage = await Stage.set(engine)
      const store = await stage.store()
      const leave = async (source: string, policy: string): Promise<void> => {
        const text = `const unstuck = await open({ policy: ${policy} }); await unstuck.begin('${source}'); await unstuck.close()`
        assert.equal(await stage.start([stage.module(`${source}.ts`, text)]).end(), 0)
        await age(stage, source, 25 * HOUR)
      }
      await leave('kept', `{}`)
      await leave('swept', `{ autoClean: true }`)
      const neighbour = stage.unstuck('work', stage.module('neighbour.ts', NEIGHBOUR))

      await neighbour.says(/recovery: run \w{8} of swept: abandon/)
      await neighbour.says(/ALERT: run \w{8} of kept: .*25 h old.* See: unstuck clean/)
      await new Promise((resolve) => setTimeout(resolve, 2_500))

      assert.equal((await stage.run('swept')).status, 'abandoned')
      assert.equal((await stage.run('kept')).status, 'interrupted')
      assert.equal(
        neighbour.output.match(/ALERT: run \w{8} of kept/g)!.length,
        1,
        'said once, not with every look',
      )
      assert.equal((await store.audit({ limit: 10 })).length, 1)
    })
  })
}

describe('(g) recovery meets an unreachable database at server start', () => {
  const SERVER = `
    import { createServer } from 'node:http'
    import { recoverOnStart } from '${new URL('../../src/index.ts', import.meta.url).href}'
    const recovered = recoverOnStart({ db: process.env.DB, timeout: '2s' })
    createServer((_, response) => response.end('up')).listen(0, function () {
      console.log('listening on ' + this.address().port)
    })
    const { error, active, verdicts } = await recovered
    console.log('recovered: ' + JSON.stringify({ error, active, verdicts }))
  `
  const startOn = (stage: Stage, db: string) =>
    stage.start([stage.module('server.ts', SERVER)], { env: { DB: db } })

  test('a log that fails, at once or later, stops nobody', async () => {
    await using stage = Stage.bare(sqliteEngine)
    const text = `
      import { recoverOnStart } from '${new URL('../../src/index.ts', import.meta.url).href}'
      const db = 'postgres://nobody@127.0.0.1:1/none'
      await recoverOnStart({ db, log: async () => { throw new Error('later') } })
      await recoverOnStart({ db, log: () => { throw new Error('now') } })
      await recoverOnStart({ db: 'sqlite:none/there.db', log: console.log })
      setTimeout(() => console.log('still here'), 50)
    `
    const program = stage.start([stage.module('server.ts', text)])
    assert.equal(await program.end(), 0, program.output)
    assert.match(program.output, /nothing has run yet: there is nothing to recover\nstill here/)
  })

  for (const [what, answers] of [
    ['refuses', false],
    ['never answers', true],
  ] as const) {
    test(`one that ${what}: the server starts, and is told`, async () => {
      await using stage = Stage.bare(sqliteEngine)
      const silent: Server = createServer(() => {})
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
      const { port } = silent.address() as { port: number }
      if (!answers) silent.close()

      const server = startOn(stage, `postgres://nobody:secret@127.0.0.1:${port}/none`)
      await server.says(/listening on \d+/)
      const [, at] = /listening on (\d+)/.exec(server.output)!
      assert.equal(await (await fetch(`http://127.0.0.1:${at}/`)).text(), 'up')
      await server.says(/recovered: \{"error":"[^"]+","active":\[\],"verdicts":\[\]\}/)

      assert.match(server.output, /\[unstuck\] recovery at the start did not come to its end/)
      assert.doesNotMatch(server.output, /secret/)
      assert.equal(server.isAlive, true)
      server.signal('SIGKILL')
      await server.end()
      if (answers) silent.close()
    })
  }
})
