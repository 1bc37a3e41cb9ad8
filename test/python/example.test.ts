import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CLI, ProcessTestContext, Program, SOME_ENGINES } from '../processes/harness.ts'
import { noPython, PYTHON, PYTHON_ENV } from './python.ts'

const example = (name: string): string =>
  fileURLToPath(new URL(`../../examples/python/${name}`, import.meta.url))

const GUIDE = fileURLToPath(new URL('../../docs/guides/from-a-python-crawler.md', import.meta.url))

/** The first program of the guide, with the address of this site. */
function guideCrawl(site: string): string {
  const [, program] = /```python\n(import re\n.*?)```/s.exec(readFileSync(GUIDE, 'utf8'))!
  return program!.replace('http://127.0.0.1:8000', site)
}

/** As the site has them. */
const PAGES = 4
const PER_PAGE = 5

/** The site of the examples, which ends with the test. */
async function startSite(ctx: ProcessTestContext): Promise<string> {
  const env = { ...process.env, STAGE: ctx.folder }
  const command = [example('directory_site.py'), '0']
  const server = new Program(spawn(PYTHON, command, { stdio: ['ignore', 'pipe', 'pipe'], env }))
  return server.waitForOutput(/http:\/\/127\.0\.0\.1:\d+/)
}

/** Crawls the site, and checks that each company of so many targets is there once. */
async function crawlSite(
  ctx: ProcessTestContext,
  program: string,
  site: string,
  targets: number,
): Promise<void> {
  const flags = ['--source', 'yellow-pages', '--workers', '2', '--drain']
  const crawl = ctx.start([CLI, 'work', '--exec', '--targets', ...flags, '--', PYTHON, program], {
    env: { ...PYTHON_ENV, SITE: site },
  })
  assert.equal(await crawl.waitForExit(), 0, crawl.output)
  const { counts } = await ctx.run('yellow-pages')
  assert.deepEqual(
    [counts.targets.done, counts.pages, counts.itemsNew],
    [targets, targets * PAGES, targets * PAGES * PER_PAGE],
  )
}

for (const engine of SOME_ENGINES) {
  describe(`programs of the docs, ${engine.name}`, { skip: noPython }, () => {
    test('yellow_pages.py crawls the site of the example', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const site = await startSite(ctx)
      await crawlSite(ctx, example('yellow_pages.py'), site, 10)
      const items = ctx.unstuck('items', 'yellow-pages', '--group', 'FL', '--limit', '1')
      assert.equal(await items.waitForExit(), 0)
      const item = JSON.parse(items.output) as Record<string, unknown>
      assert.deepEqual(
        [item['url'], item['data']],
        [`${site}/miami/bakers/1-0`, { name: 'Pipes & Sons 0', state: 'FL' }],
      )
    })

    test('the crawl of the guide saves what the guide shows', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const site = await startSite(ctx)
      const program = join(ctx.folder, 'crawl.py')
      writeFileSync(program, guideCrawl(site))
      await crawlSite(ctx, program, site, 18)
    })
  })
}
