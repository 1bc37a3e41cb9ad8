import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { claim, claimOne, savePage, enqueueCrawl } from '../../testing/fixtures.ts'
import {
  noTerminal,
  createCliTestContext,
  type CliTestContext,
} from '../../testing/cli-test-context.ts'
import { cliCommand } from '../../testing/unstuck-cli.ts'
import { pollDelay } from './top.ts'

const ENTER = '\x1b[?1049h'
const LEAVE = '\x1b[?25h\x1b[?1049l'

type Session = Disposable & {
  /** Types this when the screen says so, from what was said since the last time. */
  when(says: RegExp | string, keys: string): Promise<void>
  pid(): number
  /** After the program has ended: its code, and whether the terminal is as it was before. */
  end(): Promise<{ code: number; isAsBefore: boolean; raw: string }>
}

/** The real program on a terminal of its own, 80 × 24, between two looks at the terminal's settings. */
function startSession(
  ctx: CliTestContext,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Session {
  const call = cliCommand(['top', '--db', ctx.database.url, ...args])
  const words = call.command.map((word) => `'${word}'`).join(' ')
  const script =
    `stty cols 80 rows 24; echo "before $(stty -g)"; ` +
    `sh -c 'echo "pid $$"; exec "$@"' - ${words}; echo "code $?"; echo "after $(stty -g)"`
  const child = spawn('script', ['-qec', script, '/dev/null'], {
    cwd: ctx.cwd,
    env: { ...call.env, TERM: 'xterm', ...env },
  })
  let [raw, read] = ['', 0]
  let heard = (): void => {}
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text
    heard()
  })
  const ended = once(child, 'close')
  const said = (): string => stripVTControlCharacters(raw)
  const found = (pattern: RegExp): string => pattern.exec(said())![1]!
  return {
    async when(says, keys) {
      const isThere = (): boolean => {
        const fresh = stripVTControlCharacters(raw.slice(read))
        return typeof says === 'string' ? fresh.includes(says) : says.test(fresh)
      }
      if (!isThere()) {
        const found = Promise.withResolvers<void>()
        heard = () => isThere() && found.resolve()
        const fail = (): void => found.reject(new Error(`no ${String(says)}: ${said()}`))
        const deadline = setTimeout(fail, 150_000)
        await Promise.race([
          found.promise,
          ended.then(() => assert.ok(isThere(), `it ended without ${String(says)}: ${said()}`)),
        ])
        clearTimeout(deadline)
      }
      read = raw.length
      child.stdin.write(keys)
    },
    pid: () => Number(found(/^pid (\d+)/m)),
    async end() {
      await ended
      const isAsBefore = found(/^before ([\da-f:]+)/m) === found(/after ([\da-f:]+:[\da-f:]+)/)
      return { code: Number(found(/code (\d+)\r/)), isAsBefore, raw }
    },
    // It ends with its terminal.
    [Symbol.dispose]: () => void child.kill(),
  }
}

/** A run whose worker is proven gone, with one page saved. */
async function createOrphan(ctx: CliTestContext): Promise<string> {
  const run = await enqueueCrawl(ctx.store, 3, { source: 'directory' })
  const worker = await ctx.registerDeadWorker('directory')
  await savePage(ctx.store, await claimOne(ctx.store, worker, { source: 'directory' }))
  await claim(ctx.store, worker, 1, { source: 'directory' })
  return run
}

describe('top on a terminal', { skip: noTerminal, timeout: 300_000 }, () => {
  test('it draws, follows keys, recovers after y, reverts a cancel, and restores the terminal', async () => {
    await using ctx = await createCliTestContext()
    const run = await createOrphan(ctx)
    using session = startSession(ctx)
    await session.when(/Something is stuck[^]*orphaned/, 'R')
    await session.when(/Would be applied[^]*Apply these 2 verdicts\?/, 'y')
    await session.when('2 verdicts applied.', 'c')
    await session.when('Cancel it?', 'y')
    await session.when(/is cancelled; its data is kept/, 'u')
    await session.when('Revert it?', 'y')
    await session.when(/Reverted "cancel" on run .*: it is interrupted/, '5')
    await session.when(/\[5 History\][^]*revert/, 'q')
    const { code, isAsBefore, raw } = await session.end()

    assert.deepEqual({ code, isAsBefore }, { code: 0, isAsBefore: true })
    assert.ok(raw.indexOf(ENTER) < raw.indexOf(LEAVE), 'it gives the screen back')
    const trail = await ctx.store.audit({ run, limit: 10 })
    assert.deepEqual(
      trail.map(({ action }) => action),
      ['resume', 'replan', 'cancel', 'revert'],
    )
    assert.equal((await ctx.store.run(run))?.status, 'interrupted')
  })

  test('after SIGTERM the terminal is as it was', async () => {
    await using ctx = await createCliTestContext()
    await createOrphan(ctx)
    using session = startSession(ctx)
    await session.when('orphaned', '')
    process.kill(session.pid(), 'SIGTERM')
    const { code, isAsBefore, raw } = await session.end()
    assert.deepEqual({ code, isAsBefore }, { code: 0, isAsBefore: true })
    assert.ok(raw.includes(LEAVE))
  })

  test('Ctrl-Z gives the terminal back, and it comes back whole', async () => {
    await using ctx = await createCliTestContext()
    await createOrphan(ctx)
    using session = startSession(ctx)
    // Where no shell could wake it again the system does not stop it, so here it comes back by itself.
    await session.when('orphaned', '\x1a')
    await session.when(/orphaned/, 'q')
    const { isAsBefore, raw } = await session.end()
    assert.ok(isAsBefore)
    assert.equal(raw.split(ENTER).length, 3)
    assert.equal(raw.split(LEAVE).length, 3)
  })

  test('a read-only session changes nothing', async () => {
    await using ctx = await createCliTestContext()
    await createOrphan(ctx)
    const before = await ctx.dump()
    using session = startSession(ctx, ['--read-only'])
    await session.when(/read-only[^]*orphaned/, 'R')
    await session.when('start it without --read-only to act', 'q')
    assert.equal((await session.end()).code, 0)
    assert.equal(await ctx.dump(), before)
  })

  test('without colour no colour is sent; the mark shows what is chosen', async () => {
    await using ctx = await createCliTestContext()
    await createOrphan(ctx)
    using session = startSession(ctx, [], { NO_COLOR: '1' })
    await session.when(/> \S{8} {2}directory/, 'q')
    const { raw } = await session.end()
    // oxlint-disable-next-line no-control-regex
    assert.doesNotMatch(raw, /\x1b\[[1-9]\d*m/)
  })

  test('on a terminal that cannot draw it says what does', async () => {
    await using ctx = await createCliTestContext()
    await createOrphan(ctx)
    using session = startSession(ctx, [], { TERM: 'dumb' })
    const { code, raw } = await session.end()
    assert.equal(code, 2)
    assert.match(raw, /unstuck status --watch/)
    assert.ok(!raw.includes(ENTER))
  })
})

test('without a terminal it ends with 2 and says what to use instead', async () => {
  await using ctx = await createCliTestContext()
  const { stderr, stdout } = await ctx.cli(['top'], 2)
  assert.match(stderr, /unstuck status --watch/)
  assert.equal(stdout, '')
  assert.match((await ctx.cli(['top', '--json'], 2)).stderr, /unstuck status --json/)
})

test('a slow refresh is run less often: at most a tenth of the time', () => {
  assert.deepEqual([5, 100, 3_000].map(pollDelay), [1_000, 1_000, 30_000])
})
