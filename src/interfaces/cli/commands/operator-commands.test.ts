import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { RunId, TargetId } from '../../../core/model/id.ts'
import {
  beginOne,
  recoverWorker,
  claimOne,
  savePage,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import {
  HOSTILE_TEXT,
  UNSAFE_CHARACTERS,
  HOUR_MS,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'
import { COMMANDS } from '../commands.ts'
import { widthOf } from '../../../lib/terminal/width.ts'

/** What holds for all commands of recovery alike. */

const ID = 'ffffffff'
/** How each is called, and how it ends where nothing ever ran. */
const CALLS: readonly [args: string[], code: number][] = [
  [['check', 'shop'], 0],
  [['summary'], 0],
  [['recover'], 0],
  [['clean'], 0],
  [['clean', '--delete'], 0],
  [['history'], 0],
  [['explain', ID], 2],
  [['cancel', ID], 2],
  [['resume', ID], 2],
  [['retry', ID], 2],
  [['revert', ID], 2],
  [['reset-failed'], 2],
  [['park', ID], 2],
  [['unpark', ID], 2],
  [['rewind', ID, '--to', '0'], 2],
]

describe('where nothing ever ran', { concurrency: 2 }, () => {
  for (const [args, code] of CALLS) {
    test(`${args.join(' ')} ends with ${code} and makes nothing`, async () => {
      using folder = temporaryFolder()
      const said = await unstuck([...args, '--json'], { cwd: folder.path })
      assert.equal(said.code, code, said.stderr)
      if (code === 0) JSON.parse(said.stdout)
      else assert.equal(JSON.parse(said.stderr).error.code, 'E_NOT_FOUND')
      assert.equal(code === 0 ? said.stderr : said.stdout, '')
      assert.ok(!existsSync(join(folder.path, '.unstuck')))
    })
  }
})

describe('while the database is away', { concurrency: 2 }, () => {
  for (const [args] of CALLS) {
    test(`${args.join(' ')} ends with 7 and no password`, async () => {
      const db = ['--db', 'postgres://me:hunter2@127.0.0.1:1/x']
      const { code, stdout, stderr } = await unstuck([...args, ...db], { cwd: '/' })
      assert.deepEqual([code, stdout], [7, ''])
      assert.match(stderr, /^Error E_DB_UNREACHABLE/)
      assert.doesNotMatch(stderr, /hunter2/)
    })
  }
})

const TABLES = ['summary', 'clean', 'recover', 'explain', 'history', 'config']

describe('text that comes from anywhere', () => {
  let ctx: CliTestContext
  let ended: RunId
  let live: RunId
  let failed: TargetId

  /** The same hostile text wherever there is text at all. */
  before(async () => {
    ctx = await createCliTestContext()
    const { store } = ctx
    const source = `shop${HOSTILE_TEXT}`
    const worker = await ctx.registerLiveWorker(source)
    const targets = [1, 2, 3].map((n) => ({ key: `${n}${HOSTILE_TEXT}`, group: HOSTILE_TEXT }))
    ended = await enqueueCrawl(store, targets, { source })
    const broken = await savePage(store, await claimOne(store, worker, { source }))
    failed = broken.target
    await store.fail([{ ...broken, error: `HTTP 500 ${HOSTILE_TEXT}`, becomes: 'failed' }])
    const parked = await claimOne(store, worker, { source })
    await store.fail([{ ...parked, error: HOSTILE_TEXT, becomes: 'parked' }])
    await store.finish([await claimOne(store, worker, { source })])
    await store.settle()
    await store.retireWorker(worker)
    await enqueueCrawl(store, 2, { source: `dead${HOSTILE_TEXT}` })
    live = (
      await beginOne(store, await ctx.registerDeadWorker(HOSTILE_TEXT), { source: HOSTILE_TEXT })
    ).run
    const lost = await ctx.registerDeadWorker(`lost${HOSTILE_TEXT}`)
    await beginOne(store, lost, { source: `lost${HOSTILE_TEXT}` })
    await recoverWorker(store, lost, 'retry')
    await ctx.database.advanceClock(25 * HOUR_MS)
    writeFileSync(
      join(ctx.cwd, 'unstuck.config.ts'),
      `export default ${JSON.stringify({
        policies: { [source]: { retries: 2, groups: { [HOSTILE_TEXT]: { maxSilence: '1h' } } } },
      })}`,
    )
  })
  after(() => ctx[Symbol.asyncDispose]())

  const calls = (): [string[], number][] => [
    [['check', HOSTILE_TEXT], 2],
    [['summary'], 3],
    [['clean', '--dry-run'], 3],
    [['clean', '--delete', '--dry-run'], 0],
    [['clean', HOSTILE_TEXT], 2],
    [['recover', '--dry-run'], 3],
    [
      [
        'recover',
        '--dry-run',
        '--source',
        HOSTILE_TEXT,
        'x\u202e',
        '--group',
        HOSTILE_TEXT,
        'y\x1b[2J',
      ],
      0,
    ],
    [['explain', live], 0],
    [['explain', ended], 0],
    [['explain', failed], 0],
    [['explain', HOSTILE_TEXT], 2],
    [['cancel', live, '--because', HOSTILE_TEXT], 0],
    [['revert', live, '--dry-run'], 0],
    [['revert', live], 0],
    [['retry', live, '--dry-run'], 0],
    [['resume', ended, '--dry-run'], 0],
    [['reset-failed', '--dry-run'], 0],
    [['park', failed, '--because', HOSTILE_TEXT], 0],
    [['unpark', failed, '--dry-run'], 0],
    [['unpark', '--run', ended, '--group', HOSTILE_TEXT, '--dry-run'], 0],
    [['rewind', failed, '--to', '0', '--dry-run'], 0],
    [['rewind', failed, '--to', '0', '--cursor', HOSTILE_TEXT], 2],
    [['history'], 0],
    [['history', '--source', HOSTILE_TEXT], 0],
    [['config', 'show'], 0],
  ]

  test('acts on no terminal, fits it, and comes whole out of --json', async () => {
    for (const [args, code] of calls()) {
      const widths = TABLES.includes(args[0]!) ? [80, 40] : [40]
      await Promise.all(
        widths.map(async (width) => {
          const env = { COLUMNS: String(width) }
          const said = await unstuck([...args, '--db', ctx.database.url], { cwd: ctx.cwd, env })
          const where = `${args[0]} at ${width}: ${said.stderr}`
          assert.equal(said.code, code, where)
          for (const text of [said.stdout, said.stderr])
            assert.doesNotMatch(text, UNSAFE_CHARACTERS, where)
          for (const line of said.stdout.split('\n')) assertFits(line, width)
        }),
      )
    }
    const { items } = await ctx.json(['history'])
    const cancel = items.find(({ action }: any) => action === 'cancel')
    assert.deepEqual([cancel.source, cancel.because], [HOSTILE_TEXT, HOSTILE_TEXT])
    const { target } = await ctx.json(['explain', failed])
    assert.deepEqual([target.group, target.lastError], [HOSTILE_TEXT, HOSTILE_TEXT])
  })
})

/** A line is as wide as the terminal at most, but for a command to copy or a word that is longer by itself. */
function assertFits(line: string, width: number): void {
  const pieces =
    line
      .replace(/^- /, '')
      .trim()
      .match(/`[^`]*`\S*|\S+/g) ?? []
  const isOnePiece = pieces.length === 1
  assert.ok(widthOf(line) <= width || isOnePiece, `${widthOf(line)} columns: ${line}`)
}

test('each has examples of its own, and --dry-run and --yes where it changes something', async () => {
  const changes = [
    'recover',
    'clean',
    'cancel',
    'fail',
    'resume',
    'retry',
    'revert',
    'reset-failed',
  ]
  const ofSources = ['pause', 'unpause', 'run-now']
  for (const name of [...changes, ...ofSources, 'park', 'unpark', 'rewind', 'acknowledge']) {
    const entry = COMMANDS.find((one) => one.name === name)!
    assert.ok('load' in entry)
    const { examples, options } = (await entry.load()).command
    assert.ok(examples.every((example) => example.startsWith(`unstuck ${name}`)))
    assert.equal(options['dryRun'].value, null)
    assert.equal(options['yes'].short, '-y')
  }
})
