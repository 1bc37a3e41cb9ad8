import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { createDatabase } from '../../src/testing/postgres.ts'
import { unstuck, type CliResult } from '../../src/testing/unstuck-cli.ts'
import { SHORT_LEASE, ProcessTestContext, waitFor } from './harness.ts'

const file = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const BIN = file('bin/unstuck.js')
const BROKEN_CRAWLER = ['node', file('examples/broken-crawler.ts')]
/** Soon after a page, so that a machine that is busy now and calm later does not change how many kills fit in. */
const SHORT_WINDOW = ['--within', '100ms']
const CORRECT_CRAWLER = ['node', file('examples/own-code.ts')]

/** The command line in a stage, with a folder of its own for what it makes. */
class ChaosTestContext {
  readonly base = ProcessTestContext.createWithoutDatabase()
  readonly scratch = join(this.base.folder, 'scratch')

  constructor() {
    mkdirSync(this.scratch)
  }

  get env(): NodeJS.ProcessEnv {
    return { TMPDIR: this.scratch, STAGE: this.base.folder, NODE_TEST_CONTEXT: '' }
  }

  chaos(options: readonly string[], command: readonly string[]): Promise<CliResult> {
    const args = ['chaos', ...options, '--', ...command]
    return unstuck(args, { cwd: this.base.folder, env: this.env })
  }

  async report(options: readonly string[], command: readonly string[]): Promise<ChaosReport> {
    const { code, stdout, stderr } = await this.chaos(['--json', ...options], command)
    assert.notEqual(stdout, '', stderr)
    return { ...(JSON.parse(stdout) as ChaosReport), code, said: `${stdout}\n${stderr}` }
  }

  /** What is left in the temporary folder. */
  leftovers(): string[] {
    return readdirSync(this.scratch).filter((name) => name.startsWith('unstuck-chaos-'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.base.assertNoProcessesLeft()
    await this.base[Symbol.asyncDispose]()
  }
}

type ChaosReport = Record<string, any> & { readonly code: number | null; readonly said: string }

const problems = ({ problems }: ChaosReport): string[] => problems.map(({ what }: any) => what)

describe('unstuck chaos', { concurrency: 2 }, () => {
  test('a right crawler is killed again and again, and nothing is lost or doubled', async () => {
    await using ctx = new ChaosTestContext()
    const report = await ctx.report(
      ['--kills', '4', '--seed', '3', ...SHORT_WINDOW],
      CORRECT_CRAWLER,
    )
    const { said } = report
    assert.deepEqual([report.code, report.ok, report.problems], [0, true, []], said)
    assert.deepEqual([report.kills, report.lost, report.doubled], [4, 0, 0], said)
    assert.deepEqual(report.killsBySignal, { SIGKILL: 4 }, said)
    assert.deepEqual([report.result.pages, report.result.items], [20, 60], said)
    assert.ok(report.recoveries >= 2 && report.slowestRecoveryMs > 0, said)
    assert.deepEqual(ctx.leftovers(), [])
  })

  test('a crawler that moves its page on before its items are saved is found out, and its lost items are named', async () => {
    await using ctx = new ChaosTestContext()
    const { code, stdout, stderr } = await ctx.chaos(
      ['--kills', '4', '--seed', '7', ...SHORT_WINDOW],
      BROKEN_CRAWLER,
    )
    const said = `${stdout}\n${stderr}`
    assert.equal(code, 1, said)
    assert.match(stdout, /^- \d+ items of the reference are missing\. /m, said)
    assert.match(stdout, /^ {4}portal-b https:\/\/portal-b\.example\/offers\/\d+-\d$/m, said)
    assert.match(stdout, /`npx unstuck chaos --kills=4 --seed=7 --within=100ms -- node /, said)
    const [folder] = ctx.leftovers()
    assert.ok(stdout.includes(folder!), said)
    assert.ok(existsSync(join(ctx.scratch, folder!, 'kills', 'unstuck.db')))
  })

  test('without kills that crawler is flawless, and a trial without kills is no proof', async () => {
    await using ctx = new ChaosTestContext()
    const report = await ctx.report(['--within', '1h', '--seed', '7'], BROKEN_CRAWLER)
    assert.deepEqual([report.code, report.kills, report.lost], [1, 0, 0], report.said)
    assert.deepEqual(problems(report), ['no-kills'], report.said)
  })

  test('duplicates hidden by a unique key show in the output of the command', async () => {
    await using ctx = new ChaosTestContext()
    const command = ctx.base.module(
      'doubles.ts',
      `import { appendFileSync } from 'node:fs'
       const unstuck = await open()
       const run = await unstuck.begin('doubles')
       for (let page = run.page + 1; page <= 12; page++) {
         appendFileSync(process.env.UNSTUCK_CHAOS_DIR + '/out.jsonl', JSON.stringify({ key: 'k' + page }) + '\\n')
         await sleep(100)
         await run.checkpoint({ page, items: [{ key: 'k' + page, data: page }] })
       }
       await run.succeed()
       await unstuck.close()\n`,
    )
    const options = ['--kills', '3', '--seed', '1', ...SHORT_WINDOW, '--output', 'out.jsonl']
    const report = await ctx.report(options, ['node', command])
    assert.deepEqual([report.code, report.itemsLost, report.itemsDoubled], [1, 0, 0], report.said)
    assert.deepEqual(problems(report), ['output-doubled'], report.said)
    assert.match(report.problems[0].examples[0], /^k\d+: \d times instead of 1$/)
    assert.deepEqual([report.outputLost, report.outputDoubled > 0], [0, true], report.said)
  })

  test('one that sleeps beyond its lease beside a second copy has its late write refused', async () => {
    await using ctx = new ChaosTestContext()
    const command = ctx.base.module(
      'sleeps.ts',
      `const unstuck = await open({ policy: ${SHORT_LEASE} })
       try {
         const run = await unstuck.begin('sleeps')
         for (let page = run.page + 1; page <= 40; page++) {
           await sleep(100)
           await run.checkpoint({ page, items: [{ key: 'k' + page, data: page }] })
         }
         await run.succeed()
       } catch (error) {
         process.exitCode = exitCodeOf(error)
       }
       await unstuck.close()\n`,
    )
    const options = ['--kills', '1', '--seed', '1', '--signal', 'SIGSTOP']
    const report = await ctx.report(options, ['node', command])
    assert.deepEqual([report.code, report.problems], [0, []], report.said)
    assert.deepEqual([report.kills, report.result.items], [1, 40], report.said)
    assert.ok(report.lateWritesRefused >= 1, report.said)
  })

  test('Ctrl-C ends the command and all it started, and leaves nothing behind', async () => {
    await using ctx = new ChaosTestContext()
    const work = ['node', BIN, 'work', file('examples/resumable-crawl.ts'), '--drain']
    const args = [
      'chaos',
      '--kills',
      '9',
      '--seed',
      '7',
      '--',
      'sh',
      '-c',
      `${work.join(' ')} --workers 2; true`,
    ]
    const program = ctx.base.start([BIN, ...args], { env: ctx.env })
    await program.waitForOutput(/kill 1: SIGKILL to 4 processes/)
    // The next life: a shell, the parent and its two workers, and the command line itself.
    await waitFor('the command started again', () => ctx.base.processes().length >= 5)
    program.signal('SIGINT')
    assert.equal(await program.waitForExit(), 1)
    assert.deepEqual(ctx.base.processes(), [], program.output)
    assert.match(program.output, /there is no result\. Nothing is left behind\.$/m)
    assert.deepEqual(ctx.leftovers(), [])
  })

  test('a command that fails, hangs, writes elsewhere or cannot be started is distinguished from one that loses items', async () => {
    await using ctx = new ChaosTestContext()
    const fails = await ctx.report([], ['node', '-e', 'console.log("no luck"); process.exit(3)'])
    assert.deepEqual([fails.code, problems(fails)], [1, ['reference-failed']], fails.said)
    assert.deepEqual(fails.problems[0].examples, ['no luck'])
    const elsewhere = await ctx.report([], ['node', '-e', '0', '--', '--db', 'sqlite:x.db'])
    assert.deepEqual([elsewhere.code, problems(elsewhere)], [1, ['nothing-arrived']])
    assert.match(elsewhere.said, /Warning: the command has a --db of its own\./)
    const hangs = await ctx.report(
      ['--max-duration', '1s'],
      ['node', '-e', 'setInterval(() => {}, 1e6)'],
    )
    assert.deepEqual([hangs.code, problems(hangs)], [1, ['never-ended']], hangs.said)
    const missing = await ctx.chaos([], ['no-such-program'])
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /could not be started: no folder of the PATH has a program named/)
    const folder = await ctx.chaos([], [ctx.base.folder])
    assert.equal(folder.code, 2)
    assert.match(folder.stderr, /could not be started: \/.* is not an executable file/)
    assert.equal((await ctx.chaos([], [])).code, 2)
    assert.equal((await ctx.chaos(['--output', '../x'], ['node'])).code, 2)
  })

  describe(
    'on a PostgreSQL server',
    { skip: process.env['UNSTUCK_TEST_PG'] ? false : 'UNSTUCK_TEST_PG is not set' },
    () => {
      const server = process.env['UNSTUCK_TEST_PG']!

      test('two databases are made and dropped, and the one that was named is not touched', async () => {
        await using ctx = new ChaosTestContext()
        const named = await createDatabase(server)
        try {
          const options = ['--kills', '2', '--seed', '5', ...SHORT_WINDOW, '--db', named.url]
          const report = await ctx.report(options, CORRECT_CRAWLER)
          const { said } = report
          assert.deepEqual([report.code, report.problems, report.engine], [0, [], 'postgres'], said)
          assert.deepEqual([report.kills, report.result.items], [2, 60], said)
          assert.ok(!said.includes(new URL(server).password + '@'), said)
          assert.deepEqual(await query(server, SCRATCH_DATABASES), [])
          assert.deepEqual(await query(named.url, OWN_SCHEMA), [])
        } finally {
          await named.drop()
        }
      })

      test('a login that may not create databases gets an error with the alternatives', async () => {
        await using ctx = new ChaosTestContext()
        await query(server, "CREATE ROLE chaos_test LOGIN PASSWORD 'x'")
        try {
          const url = new URL(server)
          url.username = 'chaos_test'
          url.password = 'x'
          const { code, stderr } = await ctx.chaos(['--db', url.href], CORRECT_CRAWLER)
          assert.equal(code, 7, stderr)
          assert.match(stderr, /may not make databases, and nothing is tried out in yours\./)
          assert.deepEqual(ctx.leftovers(), [])
        } finally {
          await query(server, 'DROP ROLE chaos_test')
        }
      })
    },
  )
})

const SCRATCH_DATABASES = "SELECT datname FROM pg_database WHERE datname ~ '^unstuck_chaos_'"
const OWN_SCHEMA = "SELECT nspname FROM pg_namespace WHERE nspname = 'unstuck'"

async function query(server: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
