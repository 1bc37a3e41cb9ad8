import assert from 'node:assert/strict'
import { execPath } from 'node:process'
import { test } from 'node:test'
import { COMMAND_STORE } from '../../src/features/commands/store/store.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { TcpProxy } from '../../src/testing/tcp-proxy.ts'
import {
  CLI,
  ENGINES,
  kill,
  ProcessTestContext,
  SOME_ENGINES,
  waitFor,
  type Program,
} from './harness.ts'

/** The beginning of a worker without a client library. It plans the targets that `TARGETS` names. */
const HEAD = `
const { UNSTUCK_URL, UNSTUCK_TOKEN, TARGETS = '' } = process.env
let isStopping = false
process.on('SIGTERM', () => { isStopping = true; mark('sigterm') })
async function call(path: string, body?: unknown): Promise<any> {
  const response = await fetch(UNSTUCK_URL + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: 'Bearer ' + UNSTUCK_TOKEN, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return response.json()
}
const save = (id: string, page: number, done: boolean) =>
  call('/targets/' + id + '/checkpoint', { page, items: [{ key: id + page, data: page }], done })
mark('start')
const { planned } = await call('')
if (!planned && (await call('/planning', {})).planner) {
  await call('/targets', { targets: TARGETS.split(' ').map((key) => ({ key })) })
  await call('/targets/planned', {})
}
`
/** Works on one target after the other, with \`workOn\`, also after SIGTERM. */
const LOOP = `
for (;;) {
  const { targets = [], ended, stop } = await call('/claim', { waitMs: 5_000, single: true })
  if (ended || stop || targets.length === 0 && isStopping) break
  for (const target of targets) await workOn(target)
}
`

const ARGS = ['work', '--exec', '--targets', '--source', 'stage']
const [engine] = SOME_ENGINES

type Start = {
  readonly targets: string
  readonly options?: readonly string[]
  readonly words?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

function start(ctx: ProcessTestContext, program: string, how: Start): Program {
  const worker = ctx.module('worker.ts', HEAD + program)
  const { targets, options = ['--drain'], words = [], env } = how
  const args = [CLI, ...ARGS, ...options, '--', execPath, worker, ...words]
  return ctx.start(args, { env: { TARGETS: targets, ...env } })
}

test('P11 a target at which the command exits with 0 is parked like one that crashes it, and the others finish', async () => {
  await using ctx = await ProcessTestContext.create(engine!)
  const workOn = `
    async function workOn({ id, key }: any) {
      mark('page', key)
      if (key === 'poison') process.exit(0)
      await save(id, 1, true)
    }
  `
  const program = start(ctx, workOn + LOOP, { targets: 'poison a b' })
  assert.equal(await program.waitForExit(), 3, program.output)
  const targets = await ctx.targets()
  assert.deepEqual(
    ['poison', 'a', 'b'].map((key) => targets.get(key)?.status),
    ['parked', 'done', 'done'],
  )
  assert.match(program.output, /its command ended: exit code 0 while it held a target/)
  assert.equal(ctx.marks('page').filter(({ key }) => key === 'poison').length, 3)
})

test('a command that uses too much memory is told to stop: it gets no further target', async () => {
  await using ctx = await ProcessTestContext.create(engine!)
  const program = `
    const memory = Buffer.alloc(300_000_000, 1)
    const { targets: [first] } = await call('/claim', { waitMs: 5_000 })
    while (!isStopping) await sleep(10)
    mark('claim', JSON.stringify(await call('/claim', { waitMs: 5_000 })))
    await save(first.id, 1, true)
    await opened('never')
    mark('memory', String(memory.length))
  `
  const options = ['--drain', '--max-memory', '200M', '--kill-timeout', '3s']
  const work = start(ctx, program, { targets: 'a b', options })
  const [claim] = await ctx.waitForMarks('claim')
  assert.deepEqual(JSON.parse(claim!.key), { targets: [], ended: false, stop: true })
  work.signal('SIGTERM')
  await work.waitForExit()
})

test('the command that continues the work has every option, and no secret', async () => {
  await using ctx = await ProcessTestContext.create(engine!)
  const options = ['--drain', '--max-memory=1G', '--kill-timeout=20s', '--log-size=8M', '--quiet']
  const words = ['--token', 'canary-secret', '--depth=3']
  const untilStop = 'while (!isStopping) await sleep(10)'
  const program = start(ctx, untilStop, { targets: 'a', options, words })
  await ctx.waitForMarks('start')
  const env = { UNSTUCK_DB: ctx.database.url }
  const running = await unstuck(['show', 'stage', '--json'], { cwd: ctx.folder, env })
  program.signal('SIGTERM')
  assert.equal(await program.waitForExit(), 75)
  assert.match(
    program.output,
    /unstuck work --exec --targets --source=stage --drain --kill-timeout=20s --max-memory=1048576K --log-size=8192K --quiet -- \S+ \S+worker\.ts --token \S+ --depth=3\n/,
  )
  const stored = await unstuck(['show', 'stage', '--json'], { cwd: ctx.folder, env })
  for (const text of [program.output, running.stdout, stored.stdout])
    assert.doesNotMatch(text, /canary-secret/)
})

test('a command that does not exist: exit 1, and its execution has ended', async () => {
  await using ctx = await ProcessTestContext.create(engine!)
  const program = ctx.start([CLI, ...ARGS, '--drain', '--', 'no-such-program'])
  assert.notEqual(await program.waitForExit(), 0)
  assert.match(program.output, /There is no program "no-such-program"/)
  const executions = await (await ctx.store()).extend(COMMAND_STORE)
  const [execution] = await executions.executions([(await ctx.run()).id], 10)
  assert.match(execution?.end?.because ?? 'still running', /There is no program/)
})

test(
  'P13 PostgreSQL is away: copies wait and go on, a command that dies then is recovered, and SIGTERM ends all in time',
  { skip: !ENGINES.includes(postgresEngine) },
  async () => {
    await using ctx = await ProcessTestContext.create(postgresEngine)
    const proxy = await TcpProxy.start(ctx.database.url)
    using _ = { [Symbol.dispose]: () => proxy.close() }
    const workOn = `
      async function workOn({ id, key, page }: any) {
        for (let n = page + 1; n <= 3; n++) {
          mark('page', key, n)
          if (n === 2) await opened(key)
          const { error } = await save(id, n, n === 3)
          mark(error?.code ?? 'saved', key, n)
          if (error) return
        }
      }
    `
    const env = { UNSTUCK_DB: proxy.address }
    const program = start(ctx, workOn + LOOP, {
      targets: 'a b c',
      options: ['--drain', '--workers', '2', '--kill-timeout', '1s'],
      env,
    })
    const pages2 = await waitFor('page 2 of two targets', () => {
      const found = ctx.marks('page').filter(({ page }) => page === 2)
      return found.length === 2 ? found : null
    })
    proxy.close()
    await program.waitForOutput('database error')
    const [one, other] = pages2
    kill(one!.pid, 'SIGKILL')
    ctx.openGate(other!.key)
    await waitFor('the end of the killed command', () => !ctx.processes().includes(one!.pid))
    await proxy.open()
    await waitFor(
      'page 2 once more',
      () =>
        ctx.marks('page').filter(({ page, key }) => page === 2 && key === one!.key).length === 2,
    )
    ctx.openGate(one!.key)
    await waitFor('the third target', () =>
      ctx
        .marks('page')
        .find(({ page, key }) => page === 2 && ![one!.key, other!.key].includes(key)),
    )
    assert.deepEqual(ctx.marks('LEASE_LOST'), [])
    const counts = (await ctx.run()).counts
    assert.equal(counts.pages, 7)

    proxy.close()
    const stoppedAt = performance.now()
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 75, program.output)
    assert.ok(performance.now() - stoppedAt < 1_000 + 10_000 + 5_000, program.output)
    await ctx.assertNoProcessesLeft()
  },
)
