import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { CLI, ProcessTestContext, waitFor, type Program } from './harness.ts'

/** Endless pages of a few milliseconds. Page n is asked for only after page n - 1 was reported as saved. */
const CRAWL = `
  *targets() { yield { key: 'a' }; yield { key: 'b' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await sleep(5)
    return { items: [{ key: target.key + '/' + page, data: page }], next: 'next' }
  },
  `

/** A stage whose database is an ordinary file that no other process has open. */
class FileTestContext extends ProcessTestContext {
  readonly path: string

  constructor() {
    const bare = ProcessTestContext.createWithoutDatabase()
    super(bare.engine, null)
    rmSync(bare.folder, { recursive: true })
    this.path = join(this.folder, 'data', 'u.db')
    mkdirSync(dirname(this.path))
  }

  unstuckInFolder(...args: string[]): Program {
    return this.node(CLI, ...args)
  }

  node(...args: string[]): Program {
    return this.start(args, { env: { UNSTUCK_DB: `sqlite:${this.path}` } })
  }

  /** Pages that were reported as saved. */
  acknowledged(): string[] {
    return this.marks('page')
      .filter(({ page }) => page > 1)
      .map(({ key, page }) => `${key}/${page - 1}`)
  }
}

function itemsIn(path: string): Set<string> {
  using db = new DatabaseSync(path)
  return new Set(
    db
      .prepare('SELECT key FROM item')
      .all()
      .map((row) => String(row['key'])),
  )
}

function moveWithWal(from: string, to: string): void {
  for (const tail of ['', '-wal']) if (existsSync(from + tail)) renameSync(from + tail, to + tail)
}

async function assertExits7(program: Program, why: RegExp): Promise<void> {
  assert.equal(await program.waitForExit(), 7, program.output)
  assert.match(program.output, why)
  assert.match(program.output, /E_DB_UNUSABLE/)
}

describe('a SQLite file that is taken away while workers use it', { concurrency: 2 }, () => {
  test('P4 moved in the middle of a crawl: both workers end with 7, and every page reported as saved is in the moved file', async () => {
    await using ctx = new FileTestContext()
    const crawl = ctx.crawl(CRAWL)
    const workers = [ctx.unstuckInFolder('work', crawl), ctx.unstuckInFolder('work', crawl)]
    const atWork = (): boolean => new Set(ctx.marks('page').map(({ pid }) => pid)).size === 2
    await waitFor('both at work', atWork)
    const moved = join(ctx.folder, 'data', 'moved.db')

    renameSync(ctx.path, moved)

    for (const worker of workers) await assertExits7(worker, /u\.db was deleted or moved/)
    renameSync(`${ctx.path}-wal`, `${moved}-wal`)
    const saved = itemsIn(moved)
    assert.deepEqual(
      ctx.acknowledged().filter((key) => !saved.has(key)),
      [],
    )
    assert.equal(existsSync(ctx.path), false, 'no new database was made in its place')
  })

  test('deleted while a worker waits for work: it ends with 7', async () => {
    await using ctx = new FileTestContext()
    const worker = ctx.unstuckInFolder('work', ctx.crawl(CRAWL), '--no-start')
    await worker.waitForOutput('working on')
    rmSync(ctx.path)
    await assertExits7(worker, /u\.db was deleted or moved/)
  })

  test('deleted under the processes of one command: none is started again, and the command ends with 7', async () => {
    await using ctx = new FileTestContext()
    const parent = ctx.unstuckInFolder('work', ctx.crawl(CRAWL), '--workers', '2', '--drain')
    // The second may be about to start.
    await ctx.waitForMarks('page')
    rmSync(ctx.path)
    await assertExits7(parent, /u\.db was deleted or moved/)
    assert.equal(existsSync(ctx.path), false, 'no new database was made in its place')
    await ctx.assertNoProcessesLeft()
  })

  test('replaced by a backup: a worker ends with 7 and has not touched the backup', async () => {
    await using ctx = new FileTestContext()
    const worker = ctx.unstuckInFolder('work', ctx.crawl(CRAWL))
    await ctx.waitForMarks('page', 10)
    const backup = join(ctx.folder, 'backup.db')
    {
      using db = new DatabaseSync(ctx.path)
      db.exec(`VACUUM INTO '${backup}'`)
    }
    copyFileSync(backup, `${backup}.same`)
    moveWithWal(ctx.path, join(ctx.folder, 'data', 'old.db'))
    renameSync(backup, ctx.path)

    await assertExits7(worker, /u\.db was (deleted or moved|replaced by another file)/)
    assert.deepEqual(itemsIn(ctx.path), itemsIn(`${backup}.same`))
    const old = itemsIn(join(ctx.folder, 'data', 'old.db'))
    assert.deepEqual(
      ctx.acknowledged().filter((key) => !old.has(key)),
      [],
    )
  })

  test('P4 a deleted -wal file: the worker ends with 7, and every page reported as saved is in the database', async () => {
    await using ctx = new FileTestContext()
    const worker = ctx.unstuckInFolder('work', ctx.crawl(CRAWL))
    await ctx.waitForMarks('page', 20)
    rmSync(`${ctx.path}-wal`)

    await assertExits7(worker, /u\.db-wal was deleted or moved/)
    const saved = itemsIn(ctx.path)
    assert.deepEqual(
      ctx.acknowledged().filter((key) => !saved.has(key)),
      [],
    )
  })

  test('a run in own code: the checkpoint is rejected with E_DB_UNUSABLE, and its signal fires while it is idle', async () => {
    await using ctx = new FileTestContext()
    const program = ctx.module(
      'own.ts',
      `
      const unstuck = await open()
      const [busy, idle] = [await unstuck.begin('busy'), await unstuck.begin('idle')]
      idle.signal.addEventListener('abort', () => mark('aborted'))
      for (let page = 1; ; page++) {
        try {
          await busy.checkpoint({ page, items: [] })
        } catch (error) {
          mark(error.code)
          break
        }
        mark('page', 'busy', page)
        await sleep(20)
      }
      while (!idle.signal.aborted) await sleep(10)
      console.error(idle.signal.reason.code + ': ' + idle.signal.reason.message)
      await unstuck.close().catch(() => {})
      process.exit(7)
      `,
    )
    const running = ctx.node(program)
    await ctx.waitForMarks('page', 3)
    rmSync(ctx.path)

    assert.equal(await running.waitForExit(), 7, running.output)
    assert.equal(ctx.marks('E_DB_UNUSABLE').length, 1)
    assert.match(running.output, /E_DB_UNUSABLE: .*u\.db was deleted or moved/)
  })

  test('a wrapped command is ended, and `unstuck run` ends with 7', async () => {
    await using ctx = new FileTestContext()
    const program = ctx.unstuckInFolder('run', 'portal', '--', 'bash', '-c', 'echo up; sleep 1000')
    await program.waitForOutput('] up')
    rmSync(ctx.path)
    await assertExits7(program, /u\.db was deleted or moved/)
    await ctx.assertNoProcessesLeft()
    assert.equal(existsSync(ctx.path), false, 'no new database was made in its place')
  })

  test('`unstuck work --exec` ends with 7', async () => {
    await using ctx = new FileTestContext()
    const program = ctx.unstuckInFolder(
      'work',
      '--source',
      'portal',
      '--exec',
      '--',
      'sleep',
      '1000',
    )
    await waitFor('its database', () => existsSync(`${ctx.path}-workers`))
    rmSync(ctx.path)
    await assertExits7(program, /u\.db was deleted or moved/)
    assert.equal(existsSync(ctx.path), false, 'no new database was made in its place')
  })

  for (const flags of [[], ['--no-monitor']]) {
    test(`unstuck serve ${flags.join(' ')} ends with 7`, async () => {
      await using ctx = new FileTestContext()
      const server = ctx.unstuckInFolder('serve', '--port', '0', ...flags)
      await server.waitForOutput('serving http')
      const [url] = /http:\S+\//.exec(server.output)!
      await waitFor('ready', async () => (await fetch(`${url}readyz`)).ok)
      rmSync(ctx.path)
      await assertExits7(server, /u\.db was deleted or moved/)
      assert.equal(existsSync(ctx.path), false, 'no new database was made in its place')
    })
  }
})
