import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  recoverWorker,
  claimOne,
  registerWorker,
  enqueueCrawl,
  enqueueInterrupted,
} from '../../../testing/fixtures.ts'
import {
  HOSTILE_TEXT,
  UNSAFE_CHARACTERS,
  createCliTestContext,
} from '../../../testing/cli-test-context.ts'
import { createApiClient } from '../../../testing/api-client.ts'
import { httpSink, mailSink } from '../../../testing/test-receivers.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { unstuck, type CliResult } from '../../../testing/unstuck-cli.ts'
import { ALERT_STORE } from '../../../features/alerts/store/store.ts'

const CANARY = 'canary-hunter2'
const ALLOW_LOCAL = { allowPrivate: true, allowHttp: true }

function configure(folder: string, config: object): void {
  writeFileSync(join(folder, 'unstuck.config.ts'), `export default ${JSON.stringify(config)}`)
}
function assertNoSecrets({ stdout, stderr }: CliResult): void {
  assert.doesNotMatch(stdout + stderr, /canary/)
}

describe('alerts', { concurrency: true }, () => {
  test('test sends through each channel and prints each result, never the address', async () => {
    using folder = temporaryFolder()
    await using hook = await httpSink()
    await using slack = await httpSink()
    await using mail = await mailSink({ name: 'me', password: CANARY })
    slack.reply = { status: 403, body: `no such token: ${CANARY}` }
    configure(folder.path, {
      url: 'https://unstuck.example',
      channels: {
        slack: { url: `${slack.url}/services/${CANARY}`, ...ALLOW_LOCAL },
        email: {
          smtp: `smtp://me:${CANARY}@127.0.0.1:${mail.port}`,
          from: 'a@b.example',
          to: ['c@d.example'],
        },
        webhook: { url: `${hook.url}/?k=${CANARY}`, secret: CANARY, ...ALLOW_LOCAL },
      },
    })
    const all = await unstuck(['alerts', 'test'], { cwd: folder.path })
    assertNoSecrets(all)
    assert.equal(all.code, 1)
    assert.equal(all.stdout, 'slack: not taken: it answered 403\nemail: taken\nwebhook: taken\n')
    assert.equal(hook.received[0]!.body.event, 'test')
    assert.equal(hook.received[0]!.body.link, 'https://unstuck.example/')
    assert.match(mail.received[0]!.source, /^Subject: \[unstuck\] a test of this channel\r$/m)
    const one = await unstuck(['alerts', 'test', '--channel', 'webhook', '--json'], {
      cwd: folder.path,
    })
    assert.equal(one.code, 0)
    assert.deepEqual(JSON.parse(one.stdout), {
      channels: [{ channel: 'webhook', taken: true, because: null }],
    })
    assert.equal(slack.received.length, 1)
    assertNoSecrets(await unstuck(['config', 'show'], { cwd: folder.path }))
    const shown = await unstuck(['config', 'show', '--json'], { cwd: folder.path })
    assertNoSecrets(shown)
    assert.equal(JSON.parse(shown.stdout).channels.slack.host, `127.0.0.1:${slack.port}`)
  })

  test('test without a channel is a wrong call; one without an address has failed', async () => {
    using folder = temporaryFolder()
    configure(folder.path, { alerts: [] })
    const none = await unstuck(['alerts', 'test'], { cwd: folder.path })
    assert.equal(none.code, 2)
    assert.match(none.stderr, /No channel is set up/)
    configure(folder.path, { channels: { slack: {} } })
    const missing = await unstuck(['alerts', 'test'], { cwd: folder.path })
    assert.equal(missing.code, 1)
    assert.match(missing.stdout, /^slack: not taken: its address is not set/)
    assert.match(missing.stderr, /^Warning: channels\.slack\.url is not set/)
  })

  test('list shows what is open, with what to type, and 3; nothing open is 0', async () => {
    await using ctx = await createCliTestContext()
    const { stdout } = await ctx.cli(['alerts', 'list'])
    assert.equal(stdout, 'No alert is open.\n')
    assert.equal((await ctx.json(['alerts', 'list'])).severity, 'ok')
    const run = await enqueueCrawl(ctx.store, 1)
    const held = await claimOne(ctx.store, await registerWorker(ctx.store))
    await ctx.store.fail([{ ...held, error: 'broken page', becomes: 'parked' }])
    const alerts = await ctx.store.extend(ALERT_STORE)
    const alert = { owner: 'o', source: 'shop', run, command: 'unstuck unpark' }
    const because = `1 target parked: ${HOSTILE_TEXT}`
    await alerts.raiseAlert({ ...alert, cause: `parked ${run}`, rule: 'parked', because })
    // Its cause does not hold.
    await alerts.raiseAlert({ ...alert, cause: `dead ${run}`, rule: 'dead', because: 'old' })
    const listed = await ctx.cli(['alerts', 'list'], 3)
    assert.match(listed.stdout, /^parked +shop +[0-9a-f]{8} .* never$/m)
    assert.match(listed.stdout, /: `unstuck unpark --run=[0-9a-f]{8}`/)
    assert.doesNotMatch(listed.stdout, UNSAFE_CHARACTERS)
    const { items, next } = await ctx.json(['alerts', 'list'], 3)
    assert.equal(next, null)
    assert.deepEqual(
      items.map((one: any) => [one.rule, one.run, one.lastSentAt]),
      [['parked', run, null]],
    )
  })

  test('list reports what needs attention although no process opens alerts, as status does', async () => {
    await using api = await createApiClient()
    const { ctx } = api
    await enqueueCrawl(ctx.store, 1, { source: 'lost' })
    const worker = await api.registerDeadWorker('lost')
    await claimOne(ctx.store, worker, { source: 'lost' })
    const cli = async (...args: string[]) =>
      unstuck([...args, '--db', ctx.database.url], { cwd: ctx.folder })
    const [text, json, status] = [
      await cli('alerts', 'list'),
      await cli('alerts', 'list', '--json'),
      await cli('status', '--json'),
    ]
    assert.deepEqual([text.code, json.code, status.code], [3, 3, 3])
    const { severity, attention } = JSON.parse(status.stdout)
    const expected = 'No alert is open. 1 thing needs attention. See `unstuck status`.'
    assert.equal(text.stdout, `${expected}\n`)
    for (const list of [JSON.parse(json.stdout), await api.get('/api/alerts')])
      assert.deepEqual(
        [list.severity, list.attention, list.summary],
        [severity, attention.length, expected],
      )
  })

  test('the age in an open alert is that of now, although no process checks it', async () => {
    await using ctx = await createCliTestContext()
    const { store, database } = ctx
    const run = await enqueueInterrupted(store, 1)
    await database.advanceClock(3_600_000)
    const alert = { owner: 'o', rule: 'silent', source: 'shop', run, command: 'unstuck explain' }
    const because = 'not continued for 87 s'
    await (
      await store.extend(ALERT_STORE)
    ).raiseAlert({ ...alert, cause: `silent ${run}`, because })
    const { items } = await ctx.json(['alerts', 'list'], 3)
    assert.equal(items[0].because, 'not continued for 60 min')
  })

  test('a supervisor that gives up sends its alert before it ends, and its command never sees the address', async () => {
    using folder = temporaryFolder()
    await using hook = await httpSink()
    writeFileSync(
      join(folder.path, 'unstuck.config.ts'),
      `export default {
        url: 'https://unstuck.example',
        alerts: [{ when: 'gave-up', to: ['webhook'] }],
        channels: { webhook: { url: process.env.UNSTUCK_WEBHOOK, allowPrivate: true, allowHttp: true } },
      }`,
    )
    const said = await unstuck(
      ['run', 'feed', '--restart', 'on-failure', '--max-restarts', '0', '--'].concat([
        process.execPath,
        '-e',
        'console.log(process.env, process.env.COPY); process.exit(3)',
      ]),
      {
        cwd: folder.path,
        env: { UNSTUCK_WEBHOOK: `${hook.url}/${CANARY}`, COPY: `${hook.url}/${CANARY}` },
      },
    )
    assert.equal(said.code, 3, said.stderr)
    assertNoSecrets(said)
    const [{ body }] = (await hook.wait(1)) as [any]
    assert.deepEqual([body.event, body.headline], ['raised', 'gave up on feed'])
    assert.match(body.alert.because, /started again 0 times|exit/)
    assert.equal(body.alert.command, 'unstuck logs feed')
  })

  test('of two processes that end at the same moment, one notifies', async () => {
    await using ctx = await createCliTestContext()
    await using hook = await httpSink()
    const { store, cwd } = ctx
    const worker = await registerWorker(store, { source: 'other' })
    const parked = await enqueueCrawl(store, 1, { source: 'other' })
    await claimOne(store, worker, { source: 'other' })
    await recoverWorker(store, worker, 'park')
    await store.settle()
    configure(cwd, {
      alerts: [{ when: 'parked', to: ['webhook'] }],
      channels: { webhook: { url: hook.url, ...ALLOW_LOCAL } },
    })
    const index = new URL('../../../index.ts', import.meta.url).href
    const work = (source: string): Promise<CliResult> => {
      writeFileSync(
        join(cwd, `${source}.mjs`),
        `import { defineCrawl } from '${index}'
         const targets = () => [{ key: 'a' }]
         const page = async () => ({ items: [], next: null })
         export default defineCrawl({ source: '${source}', targets, page })`,
      )
      return ctx.cli(['work', `${source}.mjs`, '--drain'])
    }
    await Promise.all([work('shop'), work('feed')])
    assert.deepEqual(
      hook.received.map(({ body }) => [body.event, body.alert.run]),
      [['raised', parked]],
    )
    assert.ok((await (await store.extend(ALERT_STORE)).listAlerts({ open: true }))[0]!.lastSentAt)
  })

  test('of a parent and its worker processes only the parent checks alerts, and notifies before it ends', async () => {
    await using ctx = await createCliTestContext()
    await using hook = await httpSink()
    const { store, cwd } = ctx
    await enqueueInterrupted(store, 1, { source: 'other' })
    await ctx.database.advanceClock(25 * 3_600_000)
    configure(cwd, {
      alerts: [{ when: 'dead', to: ['webhook'] }],
      channels: { webhook: { url: hook.url, ...ALLOW_LOCAL } },
    })
    const index = new URL('../../../index.ts', import.meta.url).href
    writeFileSync(
      join(cwd, 'crawl.mjs'),
      `import { defineCrawl } from '${index}'
       const targets = () => [{ key: 'a' }, { key: 'b' }]
       const page = async () => ({ items: [], next: null })
       export default defineCrawl({ source: 'shop', targets, page })`,
    )
    await ctx.cli(['work', 'crawl.mjs', '--drain', '--workers', '2'])
    assert.deepEqual(
      hook.received.map(({ body }) => [body.event, body.alert.rule]),
      [['raised', 'dead']],
    )
    // Whose turn it was to look is kept in the database.
    const turns = await ctx.database.raw(
      `SELECT w.id FROM leader t LEFT JOIN worker w ON w.id = t.worker_id WHERE t.role LIKE 'alerts %'`,
    )
    assert.deepEqual(
      turns.map(({ id }) => id),
      [null],
      'no worker process looked',
    )
  })
})
