import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { redact } from '../../src/core/model/redact.ts'
import { createHandler } from '../../src/http.ts'
import { open } from '../../src/index.ts'
import { shellWord } from '../../src/core/model/shell-command.ts'
import { cliCommand, unstuck } from '../../src/testing/unstuck-cli.ts'
import { ENGINES, ProcessTestContext, waitFor } from './harness.ts'

const CRAWL = `
  *targets() { yield { key: 'a' }; yield { key: 'b' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    if (page === 2) await opened('page')
    return { next: page < 4 ? 'next' : null, inTransaction: ledger(target.key, page) }
  },
`
const PAGES = ['a', 'b'].flatMap((key) => [1, 2, 3, 4].map((page) => `${key}/${page}`))
const shellIn = (folder: string): string[] => ['sh', '-c', 'cd "$0" && exec "$@"', folder]

for (const engine of ENGINES) {
  test(`the command that starts a stopped crawl again is named everywhere, and continues it, ${engine.name}`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const folder = join(realpathSync(ctx.folder), "it's a shop")
    mkdirSync(folder)
    ctx.crawl(CRAWL)
    const { command: cli } = cliCommand([])
    const given = ['../crawl.ts', '--workers', '2', '--drain', '--db', ctx.database.url]
    const words = ['work', ...given, '--stop-deadline=20s']
    const first = ctx.start([...cli.slice(1), ...words], { under: shellIn(folder) })
    await ctx.waitForMarks('page', 4)
    first.signal('SIGTERM')
    await first.waitForOutput(/stopping|SIGTERM/i)
    ctx.openGate('page')
    await first.waitForExit()
    const run = await ctx.run()
    assert.equal(run.status, 'interrupted', first.output)

    const called = 'unstuck work ../crawl.ts --workers=2 --drain --stop-deadline=20s'
    // Of an address with credentials the rest is kept, for the variable.
    const address = redact(ctx.database.url)
    const command =
      address === ctx.database.url
        ? `${called} --db=${address}`
        : `UNSTUCK_DB=${shellWord(address)} ${called}`
    assert.ok(first.output.includes(`has work left. Continue it with: ${command}`), first.output)
    const elsewhere = `cd '${folder.replace("'", "'\\''")}' && ${command}`
    ctx.writeConfig({ stage: { maxSilence: '1s' } })
    const env = { UNSTUCK_DB: ctx.database.url }
    const read = async (cwd: string, ...args: string[]): Promise<any> =>
      JSON.parse((await unstuck([...args, '--json'], { cwd, env })).stdout)
    await waitFor('attention', async () => (await read(folder, 'status')).attention.length > 0)
    for (const [cwd, shown] of [
      [folder, command],
      [ctx.folder, elsewhere],
    ] as const) {
      assert.equal((await read(cwd, 'status')).attention[0].command, shown)
      assert.equal((await read(cwd, 'show', run.id)).continuation, shown)
      const { stdout } = await unstuck(['show', run.id], { cwd, env })
      assert.ok(stdout.replace(/\s+/g, ' ').includes(`(\`${shown}\`)`), stdout)
    }

    // The reader of a dashboard or an API is in no folder that is known.
    const library = await open({ db: ctx.database.url })
    assert.equal((await library.run(run.id)).continuation, elsewhere)
    await library.close()
    const access = (): { name: string; role: 'viewer' } => ({ name: 'a viewer', role: 'viewer' })
    const http = createHandler({ db: ctx.database.url, access, log: () => {} })
    const response = await http.fetch(new Request(`http://127.0.0.1/api/runs/${run.id}`))
    assert.equal(((await response.json()) as any).continuation, elsewhere)
    await http.close()

    rmSync(join(ctx.folder, 'unstuck.config.ts'))
    const bin = join(ctx.folder, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'unstuck'), `#!/bin/sh\nexec ${cli.join(' ')} "$@"\n`)
    chmodSync(join(bin, 'unstuck'), 0o755)
    const path = `${bin}${delimiter}${process.env['PATH']}`
    const again = ctx.start([], {
      under: ['sh', '-c', elsewhere.replace(address, ctx.database.url)],
      env: { PATH: path, UNSTUCK_DB: 'sqlite:other.db' },
    })
    assert.equal(await again.waitForExit(), 0, again.output)
    assert.equal((await ctx.run()).id, run.id)
    assert.equal((await ctx.run()).status, 'succeeded')
    assert.deepEqual(await ctx.ledger(), PAGES)
  })
}
