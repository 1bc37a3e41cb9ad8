import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore } from '../src/core/store/open.ts'
import { benchEngines, type BenchDatabase } from './databases.ts'
import { median, print } from './figures.ts'

/**
 * Ten Python workers beside ten TypeScript workers: pages that cost nothing, ten items each. Rounds in turns, each on a
 * database of its own. Planning: targets that one Python worker plans and posts, with nothing else to do.
 */

const CLI = fileURLToPath(new URL('../bin/unstuck.js', import.meta.url))
const INDEX = new URL('../src/index.ts', import.meta.url).href
const PACKAGE = fileURLToPath(new URL('../python/src', import.meta.url))
const WORKERS = 10
const TARGETS = 1_000
const PAGES = 10
const ROUNDS = 3
const PLANNED = 100_000

const TYPESCRIPT = `
import { defineCrawl } from '${INDEX}'
export default defineCrawl({
  source: 'bench',
  concurrency: 5,
  *targets() { for (let n = 0; n < ${TARGETS}; n++) yield { key: 't' + n, group: 'g' + (n % 10) } },
  async page({ target, page }) {
    const items = Array.from({ length: 10 }, (_, n) => ({ key: target.key + '/' + page + '/' + n, data: { page, n } }))
    return { items, done: page === ${PAGES} }
  },
})
`
const PYTHON = `
from unstuck_client import crawl, Page
@crawl(source="bench", concurrency=5)
class Bench:
    def targets(self):
        for n in range(${TARGETS}):
            yield {"key": f"t{n}", "group": f"g{n % 10}"}
    def page(self, ctx):
        items = [{"key": f"{ctx.target.key}/{ctx.page}/{n}", "data": {"page": ctx.page, "n": n}} for n in range(10)]
        return Page(items=items, done=ctx.page == ${PAGES})
Bench.run()
`
const PLANNER = `
from unstuck_client import crawl, Page
@crawl(source="bench")
class Planner:
    def targets(self):
        for n in range(${PLANNED}):
            yield {"key": f"states/{n}", "group": f"g{n % 50}", "url": f"https://directory.example/{n}"}
    def page(self, ctx):
        return Page(done=True)
Planner.run()
`

export async function benchLanguages(names: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-bench-'))
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const crawl = [file('crawl.ts', TYPESCRIPT)]
  const command = (path: string): string[] => [
    '--exec',
    '--targets',
    '--source',
    'bench',
    '--',
    'python3',
    path,
  ]
  const contenders = { typescript: crawl, python: command(file('crawl.py', PYTHON)) }
  const engines = await benchEngines(names)
  try {
    for (const engine of engines) {
      const rates: Record<string, number[]> = { typescript: [], python: [] }
      for (let round = 0; round < ROUNDS; round++) {
        for (const [name, args] of Object.entries(contenders)) {
          const database = await engine.create()
          await work(database, folder, ['--workers', String(WORKERS), '--drain', ...args])
          rates[name]!.push(await pagesPerSecond(database))
          await database.drop()
        }
      }
      const [typescript, python] = [median(rates['typescript']!), median(rates['python']!)]
      print({
        bench: 'languages',
        engine: engine.name,
        'TypeScript pages/s': Math.round(typescript),
        'Python pages/s': Math.round(python),
        ratio: (python / typescript).toFixed(2),
      })
      await planning(engine.name, await engine.create(), folder, command(file('plan.py', PLANNER)))
    }
  } finally {
    for (const engine of engines) await engine.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** From the first claim to the end of the run, by the database's clock: the start of the processes is left out. */
async function pagesPerSecond({ url }: BenchDatabase): Promise<number> {
  const store = await openStore(url)
  const [run] = (await store.runs({ source: 'bench', limit: 1 })).items
  await store.close()
  if (run?.status !== 'succeeded') throw new Error(`the run ended as ${run?.status}`)
  return (run.counts.pages * 1_000) / (run.finishedAt! - run.startedAt!)
}

/** From the start of the run until all targets are planned; then it is stopped. */
async function planning(
  engine: string,
  database: BenchDatabase,
  folder: string,
  args: readonly string[],
): Promise<void> {
  const store = await openStore(database.url)
  const stop = new AbortController()
  const working = work(database, folder, args, stop.signal)
  let run
  do {
    await new Promise((resolve) => setTimeout(resolve, 20))
    run = await store.liveRun('bench')
  } while (!run?.plannedAt)
  stop.abort()
  await working
  const seconds = (run.plannedAt - run.createdAt) / 1_000
  print({ bench: 'languages', engine, 'targets planned from Python': PLANNED, seconds })
  await store.close()
  await database.drop()
}

function work(
  { url }: BenchDatabase,
  cwd: string,
  args: readonly string[],
  stop?: AbortSignal,
): Promise<void> {
  const env = { ...process.env, UNSTUCK_DB: url, PYTHONPATH: PACKAGE, PYTHONDONTWRITEBYTECODE: '1' }
  const child = spawn(process.execPath, [CLI, 'work', ...args], { cwd, env, stdio: 'pipe' })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (output += text.toString()))
  stop?.addEventListener('abort', () => child.kill('SIGTERM'), { once: true })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => {
      if (code === 0 || stop?.aborted) resolve()
      else reject(new Error(`unstuck work ended with ${code}:\n${output.slice(-4_000)}`))
    })
  })
}
