import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { CLI, ProcessTestContext, SOME_ENGINES } from '../processes/harness.ts'
import { noPython, PYTHON, PYTHON_ENV, workOn } from './python.ts'

const PROGRAM = fileURLToPath(new URL('programs/operator_calls.py', import.meta.url))
const run = promisify(execFile)

/** What the program printed, with this in its environment. */
async function callAsOperator(
  ctx: ProcessTestContext,
  env: NodeJS.ProcessEnv,
  args: readonly string[] = [],
): Promise<Record<string, unknown>> {
  const options = { cwd: ctx.folder, env: { ...process.env, ...PYTHON_ENV, ...env } }
  const { stdout } = await run(PYTHON, [PROGRAM, ...args], options)
  return JSON.parse(stdout) as Record<string, unknown>
}

for (const engine of SOME_ENGINES) {
  test(
    `operator calls from Python give the same over HTTP and by the command line, ${engine.name}`,
    {
      skip: noPython,
    },
    async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = workOn(ctx, { program: 'directory.py', env: { TARGETS: '6', PAGES: '2' } })
      assert.equal(await crawl.waitForExit(), 0, crawl.output)

      const byCommand = await callAsOperator(ctx, {
        UNSTUCK_COMMAND: `'${process.execPath}' '${CLI}'`,
        UNSTUCK_DB: ctx.database.url,
        UNSTUCK_SERVER: undefined,
      })
      assert.deepEqual(byCommand, {
        check: 'start',
        summary: 0,
        ended: { succeeded: 1, failed: 0, cancelled: 0, abandoned: 0 },
        recovered: 0,
        recoveredNow: 0,
        cleaned: 0,
        history: [],
        items: byCommand['items'],
        some: 3,
        targets: byCommand['targets'],
        done: 5,
        failed: [],
        groups: [0, 1, 2].map((n) => [`state-${n}`, 2]),
        unknown: ['NotFound', 'NOT_FOUND'],
        unknownRun: ['NotFound', 'NOT_FOUND'],
      })
      assert.equal((byCommand['items'] as unknown[]).length, 6 * 2 * 2)
      assert.deepEqual((byCommand['targets'] as unknown[])[0], ['city-0', 'done', 2])

      const server = ctx.unstuck('serve', '--port', '0')
      const address = await server.waitForOutput(/http:\/\/127\.0\.0\.1:\d+/)
      const open = await callAsOperator(ctx, { UNSTUCK_SERVER: address })
      assert.deepEqual(open, byCommand)

      // With a token, which goes to the server that it is for; that of a run does not.
      const add = ctx.unstuck('tokens', 'add', 'python', '--role', 'operator', '--json')
      assert.equal(await add.waitForExit(), 0, add.output)
      const { token } = JSON.parse(add.output) as { token: string }
      const noToken = { UNSTUCK_SERVER: address, UNSTUCK_URL: 'http://a', UNSTUCK_TOKEN: token }
      await assert.rejects(callAsOperator(ctx, noToken), /Unauthorized/)
      assert.deepEqual(
        await callAsOperator(ctx, { UNSTUCK_SERVER: address, UNSTUCK_TOKEN: token }),
        byCommand,
      )
      assert.deepEqual(await callAsOperator(ctx, {}, [address, token]), byCommand)
      server.signal('SIGTERM')
      await server.waitForExit()
    },
  )
}
