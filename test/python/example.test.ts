import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CLI, ProcessTestContext, Program, SOME_ENGINES } from '../processes/harness.ts'
import { noPython, PYTHON, PYTHON_ENV } from './python.ts'

const example = (name: string): string =>
  fileURLToPath(new URL(`../../examples/python/${name}`, import.meta.url))

/** 5 cities, 2 categories, 4 pages of 5 companies, as the site has them. */
const TARGETS = 10
const PAGES = 4
const PER_PAGE = 5

for (const engine of SOME_ENGINES) {
  test(
    `yellow_pages.py crawls the site of the example, ${engine.name}`,
    {
      skip: noPython,
    },
    async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const server = new Program(
        spawn(PYTHON, [example('directory_site.py'), '0'], {
          stdio: ['ignore', 'pipe', 'pipe'],
          // By this it is ended with the others.
          env: { ...process.env, STAGE: ctx.folder },
        }),
      )
      const site = await server.waitForOutput(/http:\/\/127\.0\.0\.1:\d+/)
      const flags = ['--source', 'yellow-pages', '--workers', '2', '--drain']
      const crawl = ctx.start(
        [CLI, 'work', '--exec', '--targets', ...flags, '--', PYTHON, example('yellow_pages.py')],
        { env: { ...PYTHON_ENV, SITE: site } },
      )
      assert.equal(await crawl.waitForExit(), 0, crawl.output)
      const run = await ctx.run('yellow-pages')
      const { targets, pages, itemsNew } = run.counts
      assert.deepEqual(
        [targets.done, pages, itemsNew],
        [TARGETS, TARGETS * PAGES, TARGETS * PAGES * PER_PAGE],
      )
      const items = ctx.unstuck('items', 'yellow-pages', '--group', 'FL', '--limit', '1')
      assert.equal(await items.waitForExit(), 0)
      const item = JSON.parse(items.output) as Record<string, unknown>
      assert.deepEqual(
        [item['url'], item['data']],
        [`${site}/miami/bakers/1-0`, { name: 'Pipes & Sons 0', state: 'FL' }],
      )
    },
  )
}
