import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  globSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
} from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeRandom } from '../../src/features/chaos/random.ts'
import { chromium, noChromium } from '../../src/testing/chromium.ts'
import { emptyProject } from '../../src/testing/empty-project.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { ENGINES, kill, ProcessTestContext, waitFor, type Program } from './harness.ts'
import { killWithWatchdog, waitForWatchdog } from './wrapped.ts'

/** The examples of wrapped commands, as their comments say to start them, and what is promised of them. */

const SEED = Number(process.env['UNSTUCK_EXAMPLES_SEED'] ?? Date.now() % 1_000_000)
const CLI = fileURLToPath(new URL('../../bin/unstuck.js', import.meta.url))
const example = (name: string): string =>
  fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))

/** The interpreter itself: what is called `python3` may be a script that looks for one. */
const PYTHON = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], {
  encoding: 'utf8',
}).stdout?.trim()
const noPython = PYTHON ? false : 'there is no python3 on this machine'

const PAGE_TAKES_MS = 50
const PER_PAGE = 4

/** A shop's listing: so many pages, each with a link to the next. It knows how often it was asked, and by how many at once. */
class Site {
  readonly #server: Server
  readonly #pages: number
  requested = 0
  served = 0
  concurrencyMax = 0
  #inFlight = 0
  #heldFrom = Infinity
  readonly #held: (() => void)[] = []
  onRequest: () => void = () => {}

  constructor(pages: number) {
    this.#pages = pages
    this.#server = createServer((request, response) => {
      const url = new URL(request.url!, 'http://site')
      if (url.pathname === '/list') this.#answer(Number(url.searchParams.get('page')), response)
      else response.writeHead(404).end()
    })
  }

  static async open(pages: number): Promise<Site> {
    const site = new Site(pages)
    site.#server.listen(0, '127.0.0.1')
    await once(site.#server, 'listening')
    return site
  }

  get #base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get first(): string {
    return `${this.#base}/list?page=1`
  }

  /** Everything there is on it, as address and name. */
  get all(): string[] {
    const pages = Array.from({ length: this.#pages }, (_, n) => this.#itemsOf(n + 1))
    return pages.flat().map(({ path, name }) => `${this.#base}${path} ${name}`)
  }

  #itemsOf(page: number): { path: string; name: string }[] {
    return Array.from({ length: PER_PAGE }, (_, n) => ({
      path: `/item/${page}-${n}`,
      name: `Nuts & bolts ${page}-${n}`,
    }))
  }

  #answer(page: number, response: ServerResponse): void {
    this.requested++
    this.#inFlight++
    this.concurrencyMax = Math.max(this.concurrencyMax, this.#inFlight)
    response.once('close', () => this.#inFlight--)
    this.onRequest()
    const items = this.#itemsOf(page).map(
      ({ path, name }) => `<a class="item" href="${path}">${name.replace('&', '&amp;')}</a>`,
    )
    const next = page < this.#pages ? `<a rel="next" href="/list?page=${page + 1}">next</a>` : ''
    const answer = (): void => {
      this.served++
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(`<!doctype html><title>Shop</title>${items.join('\n')}${next}`)
    }
    if (page >= this.#heldFrom) this.#held.push(answer)
    else setTimeout(answer, PAGE_TAKES_MS)
  }

  /** From this page on it keeps every caller waiting until it is released. */
  hold(page: number): void {
    this.#heldFrom = page
  }

  release(): void {
    this.#heldFrom = Infinity
    for (const answer of this.#held.splice(0)) answer()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** How a life of the command is ended. */
type StopKind =
  | 'SIGTERM to unstuck'
  | 'SIGTERM to the script'
  | 'kill -9 of the script'
  | 'kill -9 of unstuck'
  | 'kill -9 of unstuck and watchdog'

/** A command that is started again and again on the same source, and what its lives have in common. */
class CommandRuns {
  readonly #ctx: ProcessTestContext
  readonly #site: Site
  readonly #command: readonly string[]
  readonly #env: NodeJS.ProcessEnv
  /** Copies of the script, looked for each time the site is asked. */
  copiesMax = 0
  kills = 0

  constructor(
    ctx: ProcessTestContext,
    site: Site,
    command: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ) {
    this.#ctx = ctx
    this.#site = site
    this.#command = [...command, site.first]
    this.#env = env
    site.onRequest = () => (this.copiesMax = Math.max(this.copiesMax, this.scripts().length))
  }

  /** The living processes of the command itself: by its program's first argument, which is the script. */
  scripts(): number[] {
    return this.#ctx.processes().filter((pid) => argumentsOf(pid)[1] === this.#command[1])
  }

  start(): Program {
    const options = ['--if-running', 'wait', '--kill-timeout', '1s']
    return this.#ctx.start([CLI, 'run', 'shop', ...options, '--', ...this.#command], {
      env: this.#env,
    })
  }

  /**
   * Starts it and ends it after so many pages of this life, and some milliseconds more. What `freeze` names is stopped
   * before, so that it cannot end by itself.
   */
  async untilStopped(
    stop: StopKind,
    [pages, ms]: readonly [pages: number, ms: number],
    freeze: () => readonly number[] = () => [],
  ): Promise<Program> {
    this.kills++
    const earlier = this.scripts()
    const program = this.start()
    const seen = <T>(what: string, look: () => T): Promise<NonNullable<T>> =>
      waitFor(what, () => {
        assert.ok(program.isAlive, program.output)
        return look()
      })
    const script = await seen('a new copy', () =>
      this.scripts().find((pid) => !earlier.includes(pid)),
    )
    const wanted = this.#site.served + pages
    await seen(`${pages} pages more`, () => this.#site.served >= wanted)
    await sleep(ms)
    for (const pid of freeze()) kill(pid, 'SIGSTOP')
    await this.#end(stop, program, script)
    return program
  }

  async #end(stop: StopKind, program: Program, script: number): Promise<void> {
    switch (stop) {
      case 'SIGTERM to unstuck':
        program.signal('SIGTERM')
        assert.equal(await program.waitForExit(), 75, program.output)
        return
      case 'SIGTERM to the script':
        kill(script, 'SIGTERM')
        assert.equal(await program.waitForExit(), 75, program.output)
        return
      case 'kill -9 of the script':
        kill(script, 'SIGKILL')
        assert.equal(await program.waitForExit(), 137, program.output)
        return
      case 'kill -9 of unstuck and watchdog':
        await killWithWatchdog(program)
        return
      case 'kill -9 of unstuck':
        program.signal('SIGKILL')
        await program.waitForExit()
    }
  }

  /** The last life: it finishes, and everything is there once. */
  async finish(pages: number): Promise<Program> {
    const program = this.start()
    assert.equal(await program.waitForExit(), 0, program.output)
    await this.#ctx.assertNoProcessesLeft()
    assert.deepEqual(await this.#saved(), this.#site.all.sort())
    const run = await this.#ctx.run('shop')
    const { items } = await (await this.#ctx.store()).targets(run.id, { limit: 10 })
    assert.deepEqual(
      items.map(({ status, page, next }) => ({ status, page, next })),
      [{ status: 'done', page: pages, next: null }],
    )
    assert.deepEqual([run.status, run.counts.pages], ['succeeded', pages])
    assert.equal(this.copiesMax, 1)
    return program
  }

  /** From the command line, one line an item. */
  async #saved(): Promise<string[]> {
    const { stdout } = await unstuck(['items', 'shop', '--format', 'jsonl'], {
      cwd: this.#ctx.folder,
      env: { UNSTUCK_DB: this.#ctx.database.url },
    })
    const lines = stdout.trim().split('\n')
    return lines
      .map((line) => JSON.parse(line) as { url: string; data: { name: string } })
      .map(({ url, data }) => `${url} ${data.name}`)
      .sort()
  }
}

describe('examples of wrapped commands', { concurrency: 2 }, () => {
  for (const engine of isLong ? ENGINES : [sqliteEngine]) {
    const rounds = isLong && engine.name === 'sqlite' ? 2 : 1
    test(
      `crawl.py on ${engine.name}: killed at random in every way, it finishes with each item once`,
      {
        skip: noPython,
      },
      async (t) => {
        t.diagnostic(`UNSTUCK_EXAMPLES_SEED=${SEED}`)
        const dice = makeRandom(SEED)
        const pages = 15 * rounds + 5
        await using ctx = await ProcessTestContext.create(engine)
        await using site = await Site.open(pages)
        const lives = new CommandRuns(ctx, site, [PYTHON, example('python/crawl.py')])

        for (let round = 0; round < rounds; round++) {
          for (const stop of shuffled(KILLS, () => dice.next())) {
            // Two at least: then the first is saved, and no death is one without progress.
            const moment = [Math.floor(2 + dice.next() * 3), dice.next() * PAGE_TAKES_MS] as const
            const isFrozen = stop === 'kill -9 of unstuck and watchdog'
            await lives.untilStopped(stop, moment, () => (isFrozen ? lives.scripts() : []))
          }
        }
        await lives.finish(pages)

        assert.equal(site.concurrencyMax, 1)
        // Only the page in hand is asked for again.
        assert.ok(site.requested <= pages + lives.kills, `asked for ${site.requested} pages`)
      },
    )
  }

  test(
    'crawl.py: a stop lets the page in hand finish, and nothing is asked for twice',
    {
      skip: noPython,
    },
    async () => {
      const pages = 12
      await using ctx = await ProcessTestContext.create(sqliteEngine)
      await using site = await Site.open(pages)
      const lives = new CommandRuns(ctx, site, [PYTHON, example('python/crawl.py')])

      const stopped = await lives.untilStopped('SIGTERM to unstuck', [2, 0])
      assert.match(stopped.output, /stopped by SIGTERM; exit code 75\. The next start continues/)
      // Some process managers tell every process there is: that must not look like the end of all pages.
      await lives.untilStopped('SIGTERM to the script', [2, 0])
      assert.equal((await ctx.run('shop')).status, 'interrupted')
      const last = await lives.finish(pages)

      assert.match(last.output, /going on after page \d/)
      assert.equal(site.requested, pages)
    },
  )

  test(
    'crawl.py: a run that died between the last page and the finish is finished by the next start, without a page',
    {
      skip: noPython,
    },
    async () => {
      await using ctx = await ProcessTestContext.create(sqliteEngine)
      await using site = await Site.open(1)
      const body = JSON.stringify({ page: 1, items: [], next: null })
      const dying = `
      const headers = { authorization: 'Bearer ' + process.env.UNSTUCK_TOKEN, 'content-type': 'application/json' }
      await fetch(process.env.UNSTUCK_URL + '/checkpoint', { method: 'POST', headers, body: '${body}' })
      process.kill(process.pid, 'SIGKILL')
    `
      const first = ctx.unstuck('run', 'shop', '--', process.execPath, '-e', dying)
      assert.equal(await first.waitForExit(), 137, first.output)
      const second = new CommandRuns(ctx, site, [PYTHON, example('python/crawl.py')]).start()

      assert.equal(await second.waitForExit(), 0, second.output)
      assert.deepEqual([(await ctx.run('shop')).status, site.requested], ['succeeded', 0])
    },
  )

  test(
    'plain.py: one copy, restarts, history and output, without a word of Unstuck in it',
    {
      skip: noPython,
    },
    async () => {
      await using ctx = await ProcessTestContext.create(sqliteEngine)
      await using site = await Site.open(12)
      site.hold(3)
      const lives = new CommandRuns(ctx, site, [PYTHON, example('python/plain.py')])
      const command = ['--', PYTHON, example('python/plain.py'), site.first]
      const restarts = ['--restart', 'on-failure', '--restart-delay', '100ms']
      const program = ctx.unstuck('run', 'shop', ...restarts, ...command)
      await program.waitForOutput('page 2')

      const second = ctx.unstuck('run', 'shop', ...command)
      assert.equal(await second.waitForExit(), 5, second.output)
      kill(lives.scripts()[0]!, 'SIGKILL')
      site.release()
      assert.equal(await program.waitForExit(), 0, program.output)
      await ctx.assertNoProcessesLeft()

      assert.match(
        program.output,
        /failed \(killed \(SIGKILL\) by another process.*starts again in/,
      )
      const run = await ctx.run('shop')
      assert.deepEqual([run.status, run.resumes, run.artifacts], ['succeeded', 1, 1])
      const folder = join(dirname(ctx.database.url.slice('sqlite:'.length)), 'runs', run.id)
      const lines = readFileSync(join(folder, 'output', 'items.jsonl'), 'utf8')
        .trim()
        .split('\n')
      const items = lines.map((line) => JSON.parse(line) as { url: string; name: string })
      assert.deepEqual(
        items.map(({ url, name }) => `${url} ${name}`),
        site.all,
      )
      const { stdout } = await unstuck(['logs', 'shop', '--lines', 'all'], {
        cwd: ctx.folder,
        env: { UNSTUCK_DB: ctx.database.url },
      })
      assert.match(stdout, /attempt 1: [^]* out page 1\n[^]*attempt 2: [^]* out page 12\n/)
      assert.equal(site.concurrencyMax, 1)
    },
  )

  test(
    'crontab: of two that start at the same moment one runs, and the other ends with 0',
    {
      skip: hasProgram('curl') ? false : 'there is no curl on this machine',
    },
    async (t) => {
      using project = emptyProject('scraper')
      const { path } = project
      mkdirSync(join(path, 'node_modules', '.bin'))
      symlinkSync('../unstuck/bin/unstuck.js', join(path, 'node_modules', '.bin', 'unstuck'))
      let asked = 0
      const answers: (() => void)[] = []
      const shop = createServer((_, response) => {
        asked++
        answers.push(() => response.end('{"nut": 3}'))
      })
      shop.listen(0, '127.0.0.1')
      await once(shop, 'listening')
      t.after(() => {
        shop.closeAllConnections()
        shop.close()
      })
      const PRICES = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/prices.json`
      const { settings, line } = readCrontab(readFileSync(example('cron/crontab'), 'utf8'))
      assert.match(settings['PATH']!, /^\/usr\/local\/bin:/)
      // What cron gives a command, and the settings of the file with this machine's own values.
      const PATH = settings['PATH']!.replace('/usr/local/bin', dirname(process.execPath))
      const env = { HOME: path, LOGNAME: 'me', SHELL: '/bin/sh', PATH, PROJECT: path, PRICES }
      assert.deepEqual(Object.keys(settings).sort(), ['PATH', 'PRICES', 'PROJECT'])
      const start = (): Promise<number | null> => {
        const child = spawn('/bin/sh', ['-c', line], {
          cwd: '/',
          env,
          detached: true,
          stdio: 'ignore',
        })
        return new Promise((resolve) => child.once('exit', (code) => resolve(code)))
      }

      const both = [start(), start()]
      const said = (): string => readFileSync(join(path, '.unstuck', 'cron.log'), 'utf8')
      assert.equal(await Promise.race(both), 0, said())
      await waitFor('the one that runs', () => asked > 0)
      assert.match(said(), /skipped: prices is already running/)
      for (const answer of answers) answer()
      assert.deepEqual(await Promise.all(both), [0, 0], said())

      assert.equal(asked, 1)
      const [saved, ...more] = globSync('.unstuck/runs/*/output/prices.json', { cwd: path })
      assert.deepEqual([readFileSync(join(path, saved!), 'utf8'), more], ['{"nut": 3}', []])
    },
  )

  test(
    'scrape.ts: no browser is left after any kind of stop, and each page is there once',
    {
      skip: noChromium,
    },
    async () => {
      const pages = 22
      await using ctx = await ProcessTestContext.create(sqliteEngine)
      await using site = await Site.open(pages)
      const browser = await chromium()
      const CHROME_PATH = ownCopy(browser.executable, ctx.folder)
      const env = { ...browser.env, CHROME_PATH, TMPDIR: ctx.folder }
      const lives = new CommandRuns(
        ctx,
        site,
        [process.execPath, example('playwright/scrape.ts')],
        env,
      )
      const browsers = (): number[] => processesOf(CHROME_PATH)
      // When the test fails: these processes replaced their environment, so nothing else finds them.
      using _ended = { [Symbol.dispose]: () => browsers().forEach((pid) => kill(pid, 'SIGKILL')) }

      await lives.untilStopped('SIGTERM to unstuck', [2, 0], () => {
        assert.ok(browsers().length > 3)
        return []
      })
      assert.deepEqual(browsers(), [])
      // A browser ends by itself when its script is gone. A frozen one does not: it must be ended.
      await lives.untilStopped('kill -9 of the script', [2, 0], browsers)
      assert.deepEqual(browsers(), [])
      const everything = (): number[] => [...lives.scripts(), ...browsers()]
      await lives.untilStopped('kill -9 of unstuck', [2, 0], everything)
      await waitFor('no browser left', () => browsers().length === 0)
      let frozen: number[] = []
      await lives.untilStopped('kill -9 of unstuck and watchdog', [2, 0], () => {
        frozen = everything()
        return frozen
      })
      assert.deepEqual(frozen.filter(isAlive), frozen)
      let leftBeside: number[] | null = null
      const { onRequest } = site
      site.onRequest = () => {
        onRequest()
        leftBeside ??= frozen.filter(isAlive)
      }
      const last = await lives.finish(pages)

      assert.deepEqual([leftBeside, browsers()], [[], []])
      assert.match(last.output, /ended \d+ processes that an earlier copy had left/)
      assert.equal(site.concurrencyMax, 1)
      assert.ok(site.requested <= pages + lives.kills, `asked for ${site.requested} pages`)
    },
  )

  test('a command that has finished its run is not stopped by a late heartbeat', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const script = ctx.module(
      'finish.ts',
      `
        mark('there')
        await opened('finish')
        const headers = { authorization: 'Bearer ' + process.env.UNSTUCK_TOKEN }
        await fetch(process.env.UNSTUCK_URL + '/finish', { method: 'POST', headers })
        mark('finished')
        await opened('end')
      `,
    )
    const program = ctx.unstuck('run', 'shop', '--', process.execPath, script)
    await ctx.waitForMarks('there')
    const watchdog = await waitForWatchdog(program)

    // It wakes up when its next beat is due, and hears only afterwards that there is nothing left to beat for.
    await ctx.freeze({ pid: watchdog })
    ctx.openGate('finish')
    await ctx.waitForMarks('finished')
    await sleep(1_100)
    kill(watchdog, 'SIGCONT')
    await sleep(500)
    ctx.openGate('end')

    assert.equal(await program.waitForExit(), 0, program.output)
    assert.match(program.output, /finished; exit code 0/)
  })
})

const KILLS: readonly StopKind[] = [
  'kill -9 of the script',
  'kill -9 of unstuck',
  'kill -9 of unstuck and watchdog',
]

function shuffled<T>(all: readonly T[], random: () => number): T[] {
  return all
    .map((one) => ({ one, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)
}

/** The settings of a crontab and its one line without the time, as cron would hand it to the shell. */
function readCrontab(text: string): { settings: Record<string, string>; line: string } {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const settings = lines.flatMap((line) => [...(/^([A-Z]+)=(.*)$/.exec(line) ?? [])].slice(1))
  const jobs = lines.flatMap((line) => /^(?:[\d*/,-]+ +){5}(.+)$/.exec(line)?.[1] ?? [])
  assert.equal(jobs.length, 1)
  assert.doesNotMatch(jobs[0]!, /%/)
  const pairs = settings.flatMap((name, n) => (n % 2 === 0 ? [[name, settings[n + 1]!]] : []))
  return { settings: Object.fromEntries(pairs) as Record<string, string>, line: jobs[0]! }
}

function hasProgram(name: string): boolean {
  return spawnSync(name, ['--version']).status === 0
}

/** The same program under a name of its own, so that its processes are told from those of other tests. */
function ownCopy(program: string, folder: string): string {
  const own = join(folder, 'chromium')
  try {
    linkSync(program, own)
  } catch {
    // Another file system.
    copyFileSync(program, own)
  }
  return own
}

function argumentsOf(pid: number): string[] {
  return read(() => readFileSync(`/proc/${pid}/cmdline`, 'latin1')).split('\0')
}

/** By the file that they execute: no process can change that. */
function processesOf(program: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => read(() => readlinkSync(`/proc/${pid}/exe`)) === program)
}

function isAlive(pid: number): boolean {
  return /^\d+ \(.*\) [^ZX] /s.test(read(() => readFileSync(`/proc/${pid}/stat`, 'latin1')))
}

function read(look: () => string): string {
  try {
    return look()
  } catch {
    return ''
  }
}
