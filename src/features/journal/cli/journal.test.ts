import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { newId, shortId, type WorkerId } from '../../../core/model/id.ts'
import { journalName } from '../../../lib/files/journal.ts'
import { createCliTestContext, type CliTestContext } from '../../../testing/cli-test-context.ts'
import { cliCommand, unstuckProcess } from '../../../testing/unstuck-cli.ts'

const START = Date.parse('2026-11-16T10:00:00.000Z')

let ctx: CliTestContext
let folder: string
before(async () => {
  ctx = await createCliTestContext()
  folder = join(ctx.cwd, 'journal')
  mkdirSync(folder)
})
after(() => ctx[Symbol.asyncDispose]())

/** A line so many seconds after the start. */
function line(worker: WorkerId, n: number, event: object = { type: 'page_complete' }): string {
  const time = new Date(START + n * 1_000).toISOString()
  return `${JSON.stringify({ time, worker, ...event, n })}\n`
}

function startLine(worker: WorkerId, n: number, source: string): string {
  return line(worker, n, { type: 'worker_start', source, pid: 1, presence: 'file' })
}

/** Writes a journal, by default with the name that a worker of the source gives it. */
function write(source: string, lines: (worker: WorkerId) => string[], named?: string): string {
  const worker = newId()
  const path = join(folder, named ?? journalName(source, worker, 4711))
  writeFileSync(path, lines(worker).join(''))
  return path
}

async function numbers(args: readonly string[]): Promise<number[]> {
  const { items } = await ctx.json(['journal', 'read', ...args])
  return items.map(({ n }: { n: number }) => n)
}

test('the journals of a source are read as one, in order of time, also old and compressed ones', async () => {
  write('shop', (worker) => [startLine(worker, 1, 'shop'), line(worker, 4), line(worker, 9)])
  const old = newId()
  write('', () => [startLine(old, 2, 'shop'), line(old, 5)], `${old}.jsonl`)
  const other = newId()
  write('', () => [startLine(other, 2, 'shop 2')], `${other}.jsonl`)
  const packed = write('shop', (worker) => [
    startLine(worker, 3, 'shop'),
    line(worker, 6, { type: 'target_error' }),
  ])
  await ctx.cli(['journal', 'compress', packed, '--recent'])
  write('shop 2', (worker) => [startLine(worker, 7, 'shop 2')])
  write('shop-2', (worker) => [startLine(worker, 8, 'shop-2')])
  symlinkSync(packed, join(folder, journalName('shop', newId(), 1)))

  assert.deepEqual(await numbers(['shop']), [1, 2, 3, 4, 5, 6, 9])
  assert.deepEqual(await numbers(['--source', 'shop 2']), [2, 7])
  assert.deepEqual(await numbers(['shop', '--source', 'shop-2', 'shop']), [1, 2, 3, 4, 5, 6, 8, 9])
  assert.deepEqual(await numbers(['shop', '--errors']), [6])
  assert.deepEqual(await numbers(['shop', '--type', 'worker_start']), [1, 2, 3])
  const { counts, skipped } = await ctx.json(['journal', 'read', 'shop', '--count'])
  assert.deepEqual(counts, { worker_start: 3, page_complete: 3, target_error: 1 })
  assert.deepEqual(skipped, { garbage: 0, tooLong: 0, cut: 0 })
  const { stdout } = await ctx.cli(['journal', 'tail', 'shop', '--lines', '2'])
  assert.match(stdout, /^2026-11-16 10:00:06.000 {2}[0-9a-f]{8} {2}target_error .*\n.*10:00:09/)
  const last = await ctx.cli(['journal', 'tail', 'shop', 'shop 2', '--lines', '3', '--json'])
  assert.deepEqual(
    last.stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text).n),
    [6, 7, 9],
  )
})

test('several files are read by time, each once, and what is damaged in any of them is counted', async () => {
  const one = write('files', (worker) => [line(worker, 1), 'nonsense\n', line(worker, 3)])
  const two = write('files', (worker) => [line(worker, 2), '{"n":2.5}\n', line(worker, 4), '[]\n'])
  const { items, skipped } = await ctx.json(['journal', 'read', two, one, two])
  assert.deepEqual(
    items.map(({ n }: { n: number }) => n),
    [1, 2, 2.5, 3, 4],
  )
  assert.deepEqual(skipped, { garbage: 2, tooLong: 0, cut: 0 })
  const { stdout } = await ctx.cli(['journal', 'read', one])
  assert.match(stdout, /^2026-11-16 10:00:01.000 {2}page_complete/)
})

test('without a file or source, or with an unknown one, the command names the sources here', async () => {
  write('known', (worker) => [line(worker, 1)])
  for (const command of ['read', 'tail']) {
    const none = await ctx.cli(['journal', command], 2)
    assert.match(none.stderr, /Which journals\?.*unstuck journal read directory.*known/)
    const unknown = await ctx.cli(['journal', command, 'knwon'], 2)
    assert.match(unknown.stderr, /no file knwon, and no journal of a source.*known/)
    const missing = await ctx.cli(['journal', command, 'missing.jsonl'], 2)
    assert.match(missing.stderr, /no file missing\.jsonl/)
    assert.match((await ctx.cli(['journal', command, folder], 2)).stderr, /is a folder/)
  }
})

test(
  'a followed source includes workers that start later; each journal is named after its worker and process',
  { timeout: 60_000 },
  async () => {
    const library = new URL('../../../index.ts', import.meta.url).href
    const crawl = `import { defineCrawl } from '${library}'
    export default defineCrawl({
      source: 'later', targets: [{ key: 'a' }, { key: 'b' }, { key: 'c' }],
      page: async () => ({ items: [], done: true }),
    })`
    writeFileSync(join(ctx.cwd, 'later.mjs'), crawl)
    const args = ['journal', 'tail', '--source', 'later', '-f', '--json', '--db', ctx.database.url]
    const { command, env } = cliCommand(args)
    const tail = spawn(command[0]!, command.slice(1), { cwd: ctx.cwd, env })
    let [notes, text] = ['', '']
    tail.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
    tail.stderr.setEncoding('utf8').on('data', (part: string) => (notes += part))
    const until = async (has: () => boolean): Promise<void> => {
      while (!has()) await Promise.race([once(tail.stdout, 'data'), once(tail.stderr, 'data')])
    }
    try {
      await until(() => /no journal of it here yet/.test(notes))
      const work = async (): Promise<void> => {
        const args = ['work', 'later.mjs', '--drain', '--db', ctx.database.url]
        const { code, stderr } = await unstuckProcess(args, { cwd: ctx.cwd })
        assert.equal(code, 0, stderr)
      }
      await work()
      await until(() => /"type":"worker_stop"/.test(text))
      await work()
      await until(() => text.split('"type":"worker_stop"').length === 3)
    } finally {
      tail.kill('SIGINT')
    }
    const entries = text
      .trim()
      .split('\n')
      .map((one) => JSON.parse(one))
    const starts = entries.filter(({ type }) => type === 'worker_start')
    assert.equal(entries.filter(({ type }) => type === 'target_complete').length, 6)
    const files = readdirSync(folder).filter((name) => name.startsWith('later-'))
    const names = starts.map(({ worker, pid }) => `later-${shortId(worker)}-${pid}.jsonl`)
    assert.deepEqual(files.sort(), names.sort())
  },
)
