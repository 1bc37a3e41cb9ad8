import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { kill, ProcessTestContext, SOME_ENGINES, waitFor, type Program } from './harness.ts'
import { findCopies } from './wrapped.ts'

/** The workers of docs/guides/other-languages.md, under a real `unstuck work --exec --targets`. */

const WORKERS = 3
const CATEGORIES = ['bolts', 'gears', 'hinges', 'nails', 'nuts', 'screws']
const PAGES = 5
const PER_PAGE = 4
const TOTAL = CATEGORIES.length * PAGES

type Language = {
  readonly name: string
  /** The programs that it needs, each with the argument that shows that it is there. */
  readonly needs: Readonly<Record<string, string>>
  /** Returns the command; it may write into the folder. */
  readonly command: (folder: string) => readonly string[]
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'Bash',
    needs: { bash: '--version', curl: '--version', jq: '--version' },
    command: () => ['bash', example('worker.sh')],
  },
  {
    name: 'Go',
    needs: { go: 'version' },
    command: (folder) => [buildGo(example('worker.go'), folder)],
  },
  {
    name: 'PHP',
    needs: { php: '--version' },
    command: () => ['php', example('worker.php')],
  },
  {
    name: 'Ruby',
    needs: { ruby: '--version' },
    command: () => ['ruby', example('worker.rb')],
  },
]

describe('workers in other languages', { concurrency: 2 }, () => {
  for (const { name, needs, command } of LANGUAGES) {
    const missing = Object.entries(needs).find(
      ([program, argument]) => spawnSync(program, [argument]).status !== 0,
    )
    const skip = missing ? `${missing[0]} is not installed` : false
    for (const engine of name === 'Bash' ? SOME_ENGINES : [sqliteEngine]) {
      test(
        `${name} on ${engine.name}: after a lost claim, a stop and a kill -9 every page is saved once`,
        {
          skip,
        },
        async () => {
          await using ctx = await ProcessTestContext.create(engine)
          await using shop = await Shop.open()
          const work = new Work(ctx, [...command(ctx.folder), shop.url])

          // The claim of a target is lost while its page is fetched: its worker goes on with others.
          shop.hold(2)
          const first = work.start()
          await shop.waitForHeld(WORKERS)
          const copies = findCopies(first)
          assert.equal(copies.length, WORKERS, first.output)
          const lost = (await work.targets()).find(({ key }) => key === shop.held[0])!
          await work.operate('park', lost.id)
          shop.hold(3)
          await first.waitForOutput(`${lost.key} dropped: `)
          await shop.waitForHeld(WORKERS)
          assert.deepEqual(findCopies(first), copies, first.output)

          // A stop lets the pages in progress finish, and no others.
          first.signal('SIGTERM')
          await first.waitForOutput('SIGTERM: ')
          while (first.isAlive) {
            // Whatever page a copy is at when the signal reaches it.
            await sleep(100)
            shop.releaseHeld()
          }
          assert.equal(await first.waitForExit(), 75, first.output)
          await ctx.assertNoProcessesLeft()
          assert.equal((await ctx.run('shop')).counts.pages, shop.requested - 1, first.output)
          const stopped = await work.targets()
          assert.ok(stopped.every(({ status }) => status !== 'in_progress'))
          assert.ok(stopped.some(({ status, page }) => status === 'planned' && page > 1))

          // A copy that is killed is started again, and its target is taken up.
          await work.operate('unpark', lost.id)
          shop.hold(1)
          const second = work.start()
          await shop.waitForHeld(WORKERS)
          kill(findCopies(second)[0]!, 'SIGKILL')
          await second.waitForOutput('starting it again')
          shop.hold(Infinity)
          assert.equal(await second.waitForExit(), 0, second.output)
          await ctx.assertNoProcessesLeft()

          const { status, counts } = await ctx.run('shop')
          assert.deepEqual(
            [status, counts.targets.done, counts.pages, shop.requested],
            ['succeeded', CATEGORIES.length, TOTAL, TOTAL + 2],
            second.output,
          )
          assert.deepEqual(await work.items(), shop.items)
        },
      )
    }
  }
})

/** Starts of the same command on the same source. */
class Work {
  readonly #ctx: ProcessTestContext
  readonly #command: readonly string[]

  constructor(ctx: ProcessTestContext, command: readonly string[]) {
    this.#ctx = ctx
    this.#command = command
  }

  start(): Program {
    const options = ['--source', 'shop', '--workers', String(WORKERS), '--kill-timeout', '5s']
    return this.#ctx.unstuck(
      'work',
      '--exec',
      '--targets',
      '--drain',
      ...options,
      '--',
      ...this.#command,
    )
  }

  async targets() {
    const { id } = await this.#ctx.run('shop')
    return (await (await this.#ctx.store()).targets(id, { limit: 100 })).items
  }

  async operate(...words: string[]): Promise<void> {
    const { code, stderr } = await this.#unstuck([...words, '--yes'])
    assert.equal(code, 0, stderr)
  }

  /** Everything that was saved, as address and name. */
  async items(): Promise<string[]> {
    const { stdout } = await this.#unstuck(['items', 'shop', '--format', 'jsonl'])
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { url: string; data: { name: string } })
      .map(({ url, data }) => `${url} ${data.name}`)
      .sort()
  }

  #unstuck(words: string[]): ReturnType<typeof unstuck> {
    const { folder, database } = this.#ctx
    return unstuck(words, { cwd: folder, env: { UNSTUCK_DB: database.url } })
  }
}

type HeldRequest = {
  readonly category: string
  readonly page: number
  readonly answer: () => void
}

/** A shop whose pages are JSON. A page is answered when the test lets it. */
class Shop {
  readonly #server: Server
  #held: readonly HeldRequest[] = []
  #heldFrom = Infinity
  /** Requests for pages. */
  requested = 0

  constructor() {
    this.#server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url!, 'http://shop')
      const [, category = ''] = pathname.split('/')
      const page = Number(searchParams.get('page'))
      const answer = (body: unknown): void => void response.end(JSON.stringify(body))
      if (category === 'categories') {
        answer({ items: CATEGORIES.map((name) => ({ name, url: this.#address(name, 1) })) })
        return
      }
      this.requested++
      const held = { category, page, answer: () => answer(this.#page(category, page)) }
      this.#held = [...this.#held, held]
      response.once('close', () => (this.#held = this.#held.filter((one) => one !== held)))
      this.#releaseUpTo(this.#heldFrom)
    })
  }

  static async open(): Promise<Shop> {
    const shop = new Shop()
    shop.#server.listen(0, '127.0.0.1')
    await once(shop.#server, 'listening')
    return shop
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The categories of the pages that are held. */
  get held(): readonly string[] {
    return this.#held.map(({ category }) => category)
  }

  /** Everything that it sells, as address and name. */
  get items(): string[] {
    return CATEGORIES.flatMap((category) =>
      Array.from({ length: PAGES }, (_, n) => this.#itemsOf(category, n + 1)).flat(),
    )
      .map(({ url, name }) => `${url} ${name}`)
      .sort()
  }

  /** Holds pages from this one on; those before it are answered. */
  hold(page: number): void {
    this.#heldFrom = page
    this.#releaseUpTo(page)
  }

  releaseHeld(): void {
    this.#releaseUpTo(Infinity)
  }

  async waitForHeld(count: number): Promise<void> {
    await waitFor(`${count} held pages`, () => this.#held.length === count)
  }

  #releaseUpTo(page: number): void {
    const due = this.#held.filter((one) => one.page < page)
    this.#held = this.#held.filter((one) => !due.includes(one))
    for (const { answer } of due) answer()
  }

  #page(category: string, page: number): unknown {
    const next = page < PAGES ? this.#address(category, page + 1) : null
    return { items: this.#itemsOf(category, page), next }
  }

  #itemsOf(category: string, page: number): { url: string; name: string }[] {
    return Array.from({ length: PER_PAGE }, (_, n) => ({
      url: `${this.url}/${category}/${page}-${n}`,
      name: `"${category}" & more ü ${page}-${n}`,
    }))
  }

  #address(category: string, page: number): string {
    return `${this.url}/${category}?page=${page}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

function example(name: string): string {
  return fileURLToPath(new URL(`../../examples/worker/${name}`, import.meta.url))
}

function buildGo(source: string, folder: string): string {
  const program = join(folder, 'worker')
  const env = { ...process.env, HOME: folder, GOFLAGS: '', GO111MODULE: 'off' }
  const { status, stderr } = spawnSync('go', ['build', '-o', program, source], {
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  return program
}
