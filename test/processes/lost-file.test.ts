import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { CLI, Stage, until, type Program } from './harness.ts'

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
class FileStage extends Stage {
  readonly path: string

  constructor() {
    const bare = Stage.bare()
    super(bare.engine, null)
    rmSync(bare.folder, { recursive: true })
    this.path = join(this.folder, 'data', 'u.db')
    mkdirSync(dirname(this.path))
  }

  unstuckHere(...args: string[]): Program {
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

function moveWithLog(from: string, to: string): void {
  for (const tail of ['', '-wal']) if (existsSync(from + tail)) renameSync(from + tail, to + tail)
}

async function endsWith7(program: Program, why: RegExp): Promise<void> {
  assert.equal(await program.end(), 7, program.output)
  assert.match(program.output, why)
  assert.match(program.output, /E_DB_UNUSABLE/)
}

describe('a SQLite file that is taken away while workers use it', { concurrency: 2 }, () => {
  test('P4 moved in the middle of a crawl: both workers end with 7, and every page reported as saved is in the moved file', async () => {
    await using stage = new FileStage()
    const crawl = stage.crawl(CRAWL)
    const workers = [stage.unstuckHere('work', crawl), stage.unstuckHere('work', crawl)]
    const atWork = (): boolean => new Set(stage.marks('page').map(({ pid }) => pid)).size === 2
    await until('both at work', atWork)
    const moved = join(stage.folder, 'data', 'moved.db')

    renameSync(stage.path, moved)

    for (const worker of workers) await endsWith7(worker, /u\.db was deleted or moved/)
    renameSync(`${stage.path}-wal`, `${moved}-wal`)
    const saved = itemsIn(moved)
    assert.deepEqual(
      stage.acknowledged().filter((key) => !saved.has(key)),
      [],
    )
    assert.equal(existsSync(stage.path), false, 'no new database was made in its place')
  })

  test('deleted while a worker waits for work: it ends with 7', async () => {
    await using stage = new FileStage()
    const worker = stage.unstuckHere('work', stage.crawl(CRAWL), '--no-start')
    await worker.says('working on')
    rmSync(stage.path)
    await endsWith7(worker, /u\.db was deleted or moved/)
  })

  test('deleted under the processes of one command: none is started again, and the command ends with 7', async () => {
    await using stage = new FileStage()
    const parent = stage.unstuckHere('work', stage.crawl(CRAWL), '--workers', '2', '--drain')
    // The second may be about to start.
    await stage.marked('page')
    rmSync(stage.path)
    await endsWith7(parent, /u\.db was deleted or moved/)
    assert.equal(existsSync(stage.path), false, 'no new database was made in its place')
    await stage.assertNobodyLeft()
  })

  test('replaced by a backup: a worker ends with 7 and has not touched the backup', async () => {
    await using stage = new FileStage()
    const worker = stage.unstuckHere('work', stage.crawl(CRAWL))
    await stage.marked('page', 10)
    const backup = join(stage.folder, 'backup.db')
    {
      using db = new DatabaseSync(stage.path)
      db.exec(`VACUUM INTO '${backup}'`)
    }
    copyFileSync(backup, `${backup}.same`)
    moveWithLog(stage.path, join(stage.folder, 'data', 'old.db'))
    renameSync(backup, stage.path)

    await endsWith7(worker, /u\.db was (deleted or moved|replaced by another file)/)
    assert.deepEqual(itemsIn(stage.path), itemsIn(`${backup}.same`))
    const old = itemsIn(join(stage.folder, 'data', 'old.db'))
    assert.deepEqual(
      stage.acknowledged().filter((key) => !old.has(key)),
      [],
    )
  })

  test('P4 a deleted -wal file: the worker ends with 7, and every page reported as saved is in the database', async () => {
    await using stage = new FileStage()
    const worker = stage.unstuckHere('work', stage.crawl(CRAWL))
    await stage.marked('page', 20)
    rmSync(`${stage.path}-wal`)

    await endsWith7(worker, /u\.db-wal was deleted or moved/)
    const saved = itemsIn(stage.path)
    assert.deepEqual(
      stage.acknowledged().filter((key) => !saved.has(key)),
      [],
    )
  })

  test('a run in own code: the checkpoint is rejected with E_DB_UNUSABLE, and its signal fires while it is idle', async () => {
    await using stage = new FileStage()
    const program = stage.module(
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
    const running = stage.node(program)
    await stage.marked('page', 3)
    rmSync(stage.path)

    assert.equal(await running.end(), 7, running.output)
    assert.equal(stage.marks('E_DB_UNUSABLE').length, 1)
    assert.match(running.output, /E_DB_UNUSABLE: .*u\.db was deleted or moved/)
  })

  test('a wrapped command is ended, and `unstuck run` ends with 7', async () => {
    await using stage = new FileStage()
    const program = stage.unstuckHere('run', 'portal', '--', 'bash', '-c', 'echo up; sleep 1000')
    await program.says('] up')
    rmSync(stage.path)
    await endsWith7(program, /u\.db was deleted or moved/)
    await stage.assertNobodyLeft()
    assert.equal(existsSync(stage.path), false, 'no new database was made in its place')
  })

  test('`unstuck work --exec` ends with 7', async () => {
    await using stage = new FileStage()
    const program = stage.unstuckHere('work', '--source', 'portal', '--exec', '--', 'sleep', '1000')
    await until('its database', () => existsSync(`${stage.path}-workers`))
    rmSync(stage.path)
    await endsWith7(program, /u\.db was deleted or moved/)
    assert.equal(existsSync(stage.path), false, 'no new database was made in its place')
  })

  for (const flags of [[], ['--no-monitor']]) {
    test(`unstuck serve ${flags.join(' ')} ends with 7`, async () => {
      await using stage = new FileStage()
      const server = stage.unstuckHere('serve', '--port', '0', ...flags)
      await server.says('serving http')
      const [url] = /http:\S+\//.exec(server.output)!
      await until('ready', async () => (await fetch(`${url}readyz`)).ok)
      rmSync(stage.path)
      await endsWith7(server, /u\.db was deleted or moved/)
      assert.equal(existsSync(stage.path), false, 'no new database was made in its place')
    })
  }
})
