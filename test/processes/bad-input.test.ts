import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, ProcessTestContext } from './harness.ts'

const CRAWL = `
  *targets() { for (const key of 'abc') yield { key } },
  async page({ target, page }) { return { next: null, inTransaction: ledger(target.key, page) } },
`

/** Runs `unstuck …` and looks at how it ends and what it says. No error may come as a stack trace. */
async function assertRefused(
  ctx: ProcessTestContext,
  args: readonly string[],
  expected: { code: number; says: readonly RegExp[] },
): Promise<void> {
  const program = ctx.unstuck(...args)
  const code = await program.waitForExit()
  assert.equal(code, expected.code, program.output)
  for (const text of expected.says) assert.match(program.output, text)
  assert.doesNotMatch(program.output, /^ {4}at /m)
}

describe('bad input: the command line', { concurrency: 3 }, () => {
  test('an unknown flag is named, with the one that was probably meant', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    await assertRefused(ctx, ['work', ctx.crawl(CRAWL), '--drian'], {
      code: 2,
      says: [/E_USAGE: Unknown option '--drian'\. Did you mean --drain\?/, /unstuck work --help/],
    })
    assert.equal(existsSync(join(ctx.folder, '.unstuck')), false)
  })

  test('a module that is not there', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    for (const command of ['work', 'enqueue']) {
      await assertRefused(ctx, [command, 'nowhere.ts'], {
        code: 2,
        says: [/There is no module .*nowhere\.ts\. Give the path of a file that exports a crawl/],
      })
    }
  })

  test('a module without a crawl as its default export', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    const module = ctx.module('none.ts', 'export const crawl = 1\n')
    await assertRefused(ctx, ['work', module], {
      code: 2,
      says: [/none\.ts has no crawl as its default export\. Write `export default defineCrawl\(/],
    })
  })

  test('a module that throws when it is loaded', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    const module = ctx.module('broken.ts', `throw new Error('no API key in the environment')\n`)
    await assertRefused(ctx, ['work', module], {
      code: 2,
      says: [/broken\.ts could not be loaded: no API key in the environment/],
    })
  })

  test('a crawl with several mistakes reports all of them at once', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    const module = ctx.module(
      'crawl.ts',
      `export default defineCrawl({ source: '', target() {}, page: 1, concurrency: 0,
        policy: { lease: 'soon', retires: 3 } })\n`,
    )
    await assertRefused(ctx, ['work', module], {
      code: 2,
      says: [
        /there is no "target"; did you mean targets\?/,
        /source must be a name/,
        /targets is missing: it must be a list or a function/,
        /page must be a function/,
        /concurrency must be a whole number/,
        /policy\.lease must be a duration like 30s, 15m or 24h, not "soon"/,
        /policy has no retires; did you mean retries\?/,
      ],
    })
  })
})

describe('bad input: what the crawl gives back', { concurrency: 3 }, () => {
  test('a page() that returns nonsense fails its target with a clear error; the others are done', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const nonsense: Record<string, { result: string; says: RegExp }> = {
      nothing: {
        result: 'undefined',
        says: /page\(\) returned undefined for page 1\. It must return/,
      },
      text: { result: `'<html>'`, says: /page\(\) returned '<html>' for page 1/ },
      noNext: {
        result: '{ items: [] }',
        says: /neither next nor done/,
      },
      items: {
        result: '{ next: null, items: {} }',
        says: /items must be a list of items, not an object/,
      },
      noKey: {
        result: '{ next: null, items: [{ data: 1 }] }',
        says: /Item 1 of page 1 has neither an http\(s\) url nor a key.*Give it \{ url, data \} or \{ key, data \}/,
      },
      badUrl: {
        result: `{ next: null, items: [{ url: '/x', data: 1 }] }`,
        says: /neither an http\(s\) url nor a key/,
      },
      bigint: {
        result: `{ next: null, items: [{ key: 'k', data: { n: 1n } }] }`,
        says: /Item 1 of page 1 cannot be saved as JSON: .*BigInt/,
      },
      cursor: {
        result: '{ next: null, cursor: { n: 1n } }',
        says: /cursor .*cannot be saved as JSON: .*BigInt/,
      },
      transaction: {
        result: `{ next: null, inTransaction: 'sql' }`,
        says: /inTransaction must be a function/,
      },
    }
    const results = Object.entries(nonsense).map(([key, { result }]) => `${key}: () => (${result})`)
    const crawl = ctx.crawl(`
      *targets() { for (const key of [...${JSON.stringify(Object.keys(nonsense))}, 'good']) yield { key } },
      async page({ target }) {
        mark('page', target.key)
        return { ${results.join(', ')}, good: () => ({ next: null }) }[target.key]()
      },
      policy: { backoff: '1ms' },
    `)
    await assertRefused(ctx, ['work', crawl, '--drain'], {
      code: 3,
      says: [/9 failed, 0 parked/],
    })
    const targets = await ctx.targets()
    for (const [key, { says }] of Object.entries(nonsense)) {
      assert.equal(targets.get(key)!.status, 'failed')
      assert.match(targets.get(key)!.lastError!, says)
    }
    assert.equal(targets.get('good')!.status, 'done')
    assert.equal(
      ctx.marks('page').length,
      10,
      'the same answer would be refused again: it is asked for once',
    )
  })

  for (const engine of SOME_ENGINES) {
    test(`whatever page() throws fails its own target and no worker, ${engine.name}`, async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const thrown: Record<string, string> = {
        getters: `Object.defineProperties(new Error(), Object.fromEntries(['message', 'name', 'stack', 'code']
          .map((name) => [name, { get() { throw new Error('no ' + name) } }])))`,
        proxy: `new Proxy(new Error('x'), { get() { throw 1 }, getPrototypeOf() { throw 2 } })`,
        bare: 'Object.create(null)',
        symbol: `Object.assign(new Error('x'), { message: Symbol('no text') })`,
        plainSymbol: `Symbol('thrown')`,
        huge: `new Error('x'.repeat(100_000_000))`,
        circle: `(() => { const a = new Error('a'), b = new Error('b', { cause: a }); a.cause = b; return a })()`,
        toString: `{ toString() { throw new Error('again') } }`,
        nothing: 'undefined',
      }
      const inTransaction = `{ next: null, inTransaction() { throw ${thrown['proxy']} } }`
      const values = Object.entries(thrown).map(
        ([key, value]) => `${key}: () => { throw ${value} }`,
      )
      const crawl = ctx.crawl(`
        *targets() { for (const key of [...${JSON.stringify(Object.keys(thrown))}, 'own', 'good']) yield { key } },
        async page({ target }) {
          return { ${values.join(', ')}, own: () => (${inTransaction}), good: () => ({ next: null }) }[target.key]()
        },
        policy: { retries: 0 },
      `)
      await assertRefused(ctx, ['work', crawl, '--drain'], {
        code: 3,
        says: [/10 failed, 0 parked/],
      })
      const targets = await ctx.targets()
      assert.equal(targets.get('good')!.status, 'done')
      for (const key of [...Object.keys(thrown), 'own']) {
        const { status, lastError } = targets.get(key)!
        assert.equal(status, 'failed', key)
        assert.ok(lastError !== null && lastError.length <= 65_536, key)
      }
      assert.match(targets.get('getters')!.lastError!, /cannot be read/)
      const huge = await (await ctx.store()).target(targets.get('huge')!.id)
      assert.match(huge!.lastError!, /cut; it had 100000000 characters/)
      assert.match(targets.get('symbol')!.lastError!, /no text/)
    })

    test(`targets() that yields invalid values ends with 2; once fixed, the same run is finished, ${engine.name}`, async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const broken = CRAWL.replace('yield { key }', `yield key === 'b' ? { name: key } : { key }`)
      for (const command of ['enqueue', 'work']) {
        await assertRefused(ctx, [command, ctx.crawl(broken)], {
          code: 2,
          says: [
            /targets\(\) yielded \{"name":"b"\}: each target needs a key/,
            /Nothing is lost: fix it, and the next `unstuck work` calls it again/,
          ],
        })
      }
      const { id } = await ctx.run()
      assert.equal(await ctx.unstuck('work', ctx.crawl(CRAWL), '--drain').waitForExit(), 0)
      assert.equal((await ctx.run()).id, id)
      assert.deepEqual(await ctx.ledger(), ['a/1', 'b/1', 'c/1'])
    })
  }

  test('targets() that throws ends with 2, with many processes too; what it had yielded is kept', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const broken = CRAWL.replace(
      'yield { key }',
      `{ if (key === 'c') throw new Error('the index page is gone'); yield { key } }`,
    )
    await assertRefused(ctx, ['work', ctx.crawl(broken), '--workers', '2'], {
      code: 2,
      says: [/targets\(\) of stage threw: the index page is gone\. Nothing is lost/],
    })
    assert.deepEqual([...(await ctx.targets()).keys()].sort(), ['a', 'b'])
    await ctx.assertNoProcessesLeft()
    assert.equal(await ctx.unstuck('work', ctx.crawl(CRAWL), '--drain').waitForExit(), 0)
    assert.deepEqual(await ctx.ledger(), ['a/1', 'b/1', 'c/1'])
  })

  test('a setup() that throws ends with 1 and prints the error', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`${CRAWL} async setup() { throw new Error('no browser found') },`)
    await assertRefused(ctx, ['work', crawl, '--drain'], { code: 1, says: [/no browser found/] })
  })
})

describe('bad input: the database', { concurrency: 3 }, () => {
  test('a PostgreSQL server that cannot be reached', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    await assertRefused(
      ctx,
      [
        'work',
        ctx.crawl(CRAWL),
        '--db-timeout',
        '0s',
        '--db',
        'postgres://me:secret@127.0.0.1:1/db',
      ],
      {
        code: 7,
        says: [
          /E_DB_UNREACHABLE: The database postgres:\/\/127\.0\.0\.1:1\/db does not answer: .*ECONNREFUSED/,
          /Check that the server runs/,
        ],
      },
    )
  })

  test('a PostgreSQL server that accepts and never responds', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const { port } = silent.address() as AddressInfo
    await assertRefused(
      ctx,
      ['work', ctx.crawl(CRAWL), '--db-timeout', '0s', '--db', `postgres://127.0.0.1:${port}/db`],
      {
        code: 7,
        says: [/E_DB_UNREACHABLE: .* does not answer/],
      },
    )
    silent.close()
  })

  test('a SQLite file that may not be written', async (t) => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(CRAWL)
    assert.equal(await ctx.unstuck('enqueue', crawl).waitForExit(), 0)
    const path = ctx.database.url.slice('sqlite:'.length)
    const locked = lockFile(path)
    if (locked === null) return t.skip('no way to make a file read-only for this user here')
    using _ = locked
    await assertRefused(ctx, ['work', crawl, '--drain'], {
      code: 7,
      says: [/E_DB_(READ_ONLY|UNUSABLE): The database .*unstuck\.db/, /[Pp]ermission/],
    })
  })

  test('a folder that cannot be made', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    writeFileSync(join(ctx.folder, 'file'), 'a file is no folder')
    const db = `sqlite:${join(ctx.folder, 'file', 'unstuck.db')}`
    await assertRefused(ctx, ['work', ctx.crawl(CRAWL), '--db', db], {
      code: 7,
      says: [
        /E_DB_UNUSABLE: The database .* cannot be opened: .*EEXIST.* Check the path and its permissions/,
      ],
    })
  })

  test('a database of a newer schema: nothing is written', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(CRAWL)
    const path = ctx.database.url.slice('sqlite:'.length)
    await ctx.database.raw(
      `INSERT INTO migration (number, min_program_version, applied_at) VALUES (9999, 9999, 0)`,
    )
    const dump = () => {
      const db = new DatabaseSync(path)
      const tables = db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all()
      const rows = tables.map(({ name }) => db.prepare(`SELECT * FROM ${String(name)}`).all())
      db.close()
      return JSON.stringify([tables, rows])
    }
    const before = dump()
    for (const command of ['work', 'enqueue', 'status']) {
      const args = command === 'status' ? [command] : [command, crawl]
      await assertRefused(ctx, args, {
        code: 9,
        says: [
          /E_SCHEMA_NEWER: The database has schema version 9999; this unstuck knows up to \d+\. Nothing was written\. Install the newer unstuck/,
        ],
      })
    }
    assert.equal(dump(), before)
  })

  test('a text file is not a database, and stays what it is', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    const path = join(ctx.folder, 'notes.txt')
    writeFileSync(path, 'my notes, not to be lost\n'.repeat(100))
    const before = readFileSync(path, 'utf8')
    await assertRefused(ctx, ['work', ctx.crawl(CRAWL), '--db', `sqlite:${path}`], {
      code: 7,
      says: [/E_DB_UNUSABLE: The file .*notes\.txt is not a sound SQLite database/],
    })
    assert.equal(readFileSync(path, 'utf8'), before)
  })

  test('a folder is not a database', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase()
    mkdirSync(join(ctx.folder, 'folder.db'))
    await assertRefused(
      ctx,
      ['work', ctx.crawl(CRAWL), '--db', `sqlite:${join(ctx.folder, 'folder.db')}`],
      {
        code: 7,
        says: [/E_DB_UNUSABLE: The database .*folder\.db cannot be opened/],
      },
    )
  })

  test('a corrupt cursor: its target is parked with the reason, the others are done', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(CRAWL)
    assert.equal(await ctx.unstuck('enqueue', crawl).waitForExit(), 0)
    await ctx.database.raw(`UPDATE target SET cursor = '{"at": 1' WHERE key = 'b'`)
    await assertRefused(ctx, ['work', crawl, '--drain'], {
      code: 3,
      says: [/0 failed, 1 parked/],
    })
    const target = await ctx.target('b')
    assert.equal(target.status, 'parked')
    assert.match(target.lastError!, /cursor or data is not valid JSON/)
    assert.deepEqual(await ctx.ledger(), ['a/1', 'c/1'])
  })
})

/** Root writes to any file, except to one that the file system holds fast. */
function lockFile(path: string): Disposable | null {
  try {
    execFileSync('chattr', ['+i', path], { stdio: 'ignore' })
    return { [Symbol.dispose]: () => void execFileSync('chattr', ['-i', path]) }
  } catch {
    return null
  }
}
