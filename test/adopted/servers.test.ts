import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { open, recoverOnStart } from '../../src/index.ts'
import { openStore } from '../../src/core/store/open.ts'
import { cliCommand } from '../../src/testing/unstuck-cli.ts'
import { createUserProject, type UserProject } from '../../src/testing/user-project.ts'
import { tenderRuns } from '../../src/testing/user-tables.ts'
import { waitFor } from '../processes/harness.ts'

const statusesIn = async (project: UserProject): Promise<string[]> =>
  (await project.tenders()).map(({ status }) => status)

test('serve recovers adopted tables in the background, and logs what it did', async () => {
  using project = await createUserProject()
  const { command, env } = cliCommand(['serve', '--port', '0'])
  const child = spawn(command[0]!, command.slice(1), { cwd: project.folder, env })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(child, 'close')
  try {
    await waitFor('a failed row', async () => (await project.tenders())[0]!['status'] === 'failed')
    await waitFor('its word', () => /recovery: fail run tenders:1 of portal-a/.test(said))
    await waitFor('the number', () =>
      /adopted tables: recovered 1: 1 row; 1 needs attention/.test(said),
    )
    await waitFor('an alert', () =>
      /ALERT: run courses:c-1 of maths: .*See: unstuck clean/.test(said),
    )
    assert.deepEqual(await statusesIn(project), ['failed', 'running', 'completed'])
    assert.equal((await project.courses())[0]!['status'], 'running', 'that is for a person to say')
  } finally {
    child.kill('SIGTERM')
  }
  assert.deepEqual(await ended, [0, null], said)
  await using store = toAsyncDisposable(await openStore(project.own))
  const [entry, ...more] = await store.audit({ limit: 10 })
  assert.match(entry!.actor, /^monitor of process \d+ on /)
  assert.deepEqual(more, [])
})

test('recoverOnStart uses the config of its folder, and does not wait for runs that are stale already', async () => {
  using project = await createUserProject()
  // However long its reads take: the timeout comes when both stale runs have their verdicts.
  const text = `
    import { mock } from 'node:test'
    import { recoverOnStart } from '${new URL('../../src/index.ts', import.meta.url).href}'
    mock.timers.enable({ apis: ['setTimeout'] })
    const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = (text) => {
      if (/ of maths .*abandon|abandon .* of maths/.test(text)) setImmediate(() => mock.timers.tick(3_000))
      return write(text)
    }
    const { active, verdicts, error } = await recoverOnStart({ timeout: '3s' })
    console.log(JSON.stringify({ active: active.length, verdicts: verdicts.map((one) => [one.source, one.action, one.outcome]), error }))
  `
  const { env } = cliCommand([])
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
    cwd: project.folder,
    env,
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (said += part))
  await once(child, 'close')

  // The young one is given its grace, which is longer than the time that there was.
  // Lines of the recovery that still runs may come after it.
  const report = JSON.parse(said.split('\n').find((line) => line.startsWith('{'))!)
  assert.equal(report.active, 3)
  assert.deepEqual(report.verdicts, [
    ['portal-a', 'fail', 'applied'],
    ['maths', 'abandon', 'needs-attention'],
  ])
  assert.match(said, /\[unstuck\] recovered 1: 1 row; 1 needs attention\n/)
  assert.match(report.error.message, /longer than 3 s/)
  assert.match(said, /\[unstuck\] run tenders:1 of portal-a is running: 0\/1 done, 10 min old/)
  assert.deepEqual(await statusesIn(project), ['failed', 'running', 'completed'])
})

test('recoverOnStart takes tables and a preset from code, and never throws for a mistake in them', async () => {
  using project = await createUserProject()
  const lines: string[] = []
  const options = { db: project.own, log: (line: string) => lines.push(line) }
  const tenders = {
    ...tenderRuns.options.sqlite,
    db: project.app,
    policy: { startupGrace: '0s' as const },
  }

  const wrong = await recoverOnStart({
    ...options,
    config: {
      adopted: { tenders: { ...tenders, table: 'runs; DROP', columns: { id: 'id', status: '' } } },
    },
  })
  assert.match(wrong.error!.message, /adopted\.tenders\.table[^]*adopted\.tenders\.columns\.status/)
  assert.match(lines.join('\n'), /did not finish/)
  const looked = await recoverOnStart({
    ...options,
    config: { adopted: { tenders } },
    dryRun: true,
  })
  assert.deepEqual(await statusesIn(project), ['running', 'running', 'completed'])
  const done = await recoverOnStart({
    ...options,
    config: { adopted: { tenders }, preset: 'development' },
  })

  assert.deepEqual([looked.error, looked.active.length, looked.verdicts], [null, 2, []])
  assert.deepEqual(
    done.verdicts.map(({ source, action, outcome }) => [source, action, outcome]),
    [['portal-a', 'fail', 'applied']],
  )
  assert.deepEqual(await statusesIn(project), ['failed', 'running', 'completed'])
})

test('open takes tables: their rows are summarized and recovered, all errors are reported at once, and stored runs are unaffected', async () => {
  using project = await createUserProject()
  const tenders = {
    ...tenderRuns.options.sqlite,
    db: project.app,
    policy: { staleAfter: '5m', onStale: 'fail' } as const,
  }
  const wrong = { ...tenders, kind: 'rums' as 'runs', table: '' }
  await assert.rejects(open({ db: project.own, config: { adopted: { wrong } } }), {
    code: 'E_USAGE',
    message: /adopted\.wrong\.table[^]*adopted\.wrong\.kind/,
  })
  await using unstuck = await open({ db: project.own, config: { adopted: { tenders } } })

  const run = await unstuck.begin('portal-a')
  await run.succeed()
  const { verdicts } = await unstuck.recover()
  const { active } = await unstuck.summary()

  assert.deepEqual(
    verdicts.map(({ action, outcome }) => [action, outcome]),
    [['fail', 'applied']],
  )
  assert.deepEqual(
    active.map(({ origin }) => origin?.key),
    ['2'],
  )
  assert.equal((await unstuck.revert(verdicts[0]!.run)).run?.status, 'running')
})

function toAsyncDisposable<T extends { close(): Promise<void> }>(one: T): T & AsyncDisposable {
  return Object.assign(one, { [Symbol.asyncDispose]: () => one.close() })
}
