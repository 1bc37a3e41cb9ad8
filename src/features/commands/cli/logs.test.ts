import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId, shortId, type RunId } from '../../../core/model/id.ts'
import type { ClaimedTarget } from '../../../core/model/claim.ts'
import { createRunFolder } from '../../../lib/files/data-folder.ts'
import { LogFile } from '../log-file.ts'
import { beginOne, enqueueCrawl } from '../../../testing/fixtures.ts'
import {
  HOSTILE_TEXT,
  UNSAFE_CHARACTERS,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'
import { cliCommand, unstuck } from '../../../testing/unstuck-cli.ts'
import { COMMAND_STORE } from '../../../features/commands/store/store.ts'

let ctx: CliTestContext
before(async () => {
  ctx = await createCliTestContext()
})
after(() => ctx[Symbol.asyncDispose]())

type Command = { readonly run: RunId; readonly claim: ClaimedTarget; readonly log: LogFile }

/** A run whose command was started here, or on another host. */
async function startCommand(source: string, host = hostname(), log?: string): Promise<Command> {
  const worker = await ctx.registerLiveWorker(source)
  const claim = await beginOne(ctx.store, worker, { source })
  const places = createRunFolder(ctx.cwd, claim.run)
  await (
    await ctx.store.extend(COMMAND_STORE)
  ).startExecution({
    id: newId(),
    run: claim.run,
    worker,
    host,
    command: ['python', 'scrape.py'],
    outputDir: places.outputDir,
    log: log ?? places.logPath,
    startedAt: await ctx.store.now(),
    end: null,
  })
  return { run: claim.run, claim, log: new LogFile(places.logPath) }
}

async function finish(claim: ClaimedTarget): Promise<void> {
  await ctx.store.finish([claim])
  await ctx.store.settle()
}

test('output of a command is shown with its times, by the id of the run or by its source', async () => {
  const { run, log } = await startCommand('shop')
  log.note('started attempt 1, process 12')
  log.write('out', ['page 1', '東京'])
  log.write('err', ['careful'])
  const { stdout, stderr } = await ctx.cli(['logs', shortId(run)])
  assert.equal(stderr, '')
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`
  assert.match(
    stdout,
    new RegExp(
      `^${time} run started attempt 1, process 12\n${time} out page 1\n${time} out 東京\n${time} err careful\n$`,
    ),
  )
  assert.equal((await ctx.cli(['logs', 'shop'])).stdout, stdout)
  assert.equal((await ctx.cli(['logs', run])).stdout, stdout)
  const narrow = await ctx.cli(['logs', 'shop'], 0, 20)
  assert.equal(narrow.stdout, stdout)
})

test('of a source the newest run counts', async () => {
  const first = await startCommand('again')
  first.log.write('out', ['first'])
  await finish(first.claim)
  const second = await startCommand('again')
  second.log.write('out', ['second'])
  assert.match((await ctx.cli(['logs', 'again'])).stdout, /second\n$/)
  assert.match((await ctx.cli(['logs', shortId(first.run)])).stdout, /first\n$/)
})

test('lines are chosen by number, stream and age, and come as JSON lines', async () => {
  const { run, log } = await startCommand('chosen')
  const { logPath: path } = createRunFolder(ctx.cwd, run)
  writeFileSync(path, '2020-01-01T00:00:00.000Z out long ago\n')
  log.write('out', ['a', 'b'])
  log.write('err', ['c'])
  log.write('out', ['d'])
  const texts = async (...flags: string[]): Promise<string[]> => {
    const { stdout } = await ctx.cli(['logs', 'chosen', '--json', ...flags])
    const lines = stdout.split('\n').slice(0, -1)
    return lines.map((line) => {
      const { at, stream, text, ...rest } = JSON.parse(line)
      assert.match(at, /^\d{4}-.*Z$/)
      assert.deepEqual(rest, {})
      return `${stream} ${text}`
    })
  }
  const all = ['out long ago', 'out a', 'out b', 'err c', 'out d']
  assert.deepEqual(await texts(), all)
  assert.deepEqual(await texts('--lines', 'all'), all)
  assert.deepEqual(await texts('--lines', '2'), ['err c', 'out d'])
  assert.deepEqual(await texts('--stream', 'out', '--lines', '2'), ['out b', 'out d'])
  assert.deepEqual(await texts('--since', '1h'), all.slice(1))
})

test('a line injected into the file cannot control the terminal', async () => {
  const { run, log } = await startCommand('planted')
  log.write('out', ['x'])
  const { logPath: path } = createRunFolder(ctx.cwd, run)
  const evil = HOSTILE_TEXT.replaceAll(/[\r\n]/g, '')
  appendFileSync(path, `2026-11-16T10:00:00.000Z out ${evil}\n`)
  assert.doesNotMatch((await ctx.cli(['logs', 'planted'])).stdout, UNSAFE_CHARACTERS)
  const { stdout } = await ctx.cli(['logs', 'planted', '--json'])
  assert.doesNotMatch(stdout, UNSAFE_CHARACTERS)
  assert.equal(JSON.parse(stdout.split('\n')[1]!).text, evil)
})

/** A call that is listened to while it lasts. */
function followLogs(args: readonly string[]): {
  until(seen: RegExp): Promise<void>
  said: Promise<string>
} {
  const { command, env } = cliCommand([...args, '--db', ctx.database.url])
  const child = spawn(command[0]!, command.slice(1), { cwd: ctx.cwd, env })
  let all = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (all += text))
  }
  return {
    async until(seen) {
      while (!seen.test(all)) await sleep(20)
    },
    said: once(child, 'close').then(([code]) => {
      assert.equal(code, 0, all)
      return all
    }),
  }
}

test('-f goes on with new lines until the run has ended', async () => {
  const { run, log, claim } = await startCommand('followed')
  log.write('out', ['one'])
  const call = followLogs(['logs', shortId(run), '-f'])
  await call.until(/out one\n/)
  log.write('out', ['two'])
  await call.until(/out two\n/)
  await finish(claim)
  log.note('ended: exit code 0')
  const end = `run ended: exit code 0\nRun ${shortId(run)} has ended: succeeded\\.\n$`
  assert.match(await call.said, new RegExp(`out one\n.* out two\n.* ${end}`))
})

test('-f ends with Ctrl-C, and that is no failure', async () => {
  const { log } = await startCommand('endless')
  log.write('out', ['one'])
  const { code, stderr } = await unstuck(['logs', 'endless', '-f', '--db', ctx.database.url], {
    cwd: ctx.cwd,
    stopAfter: /out one/,
  })
  assert.equal(code, 0)
  assert.equal(stderr, '')
})

test('-f waits for a run that has not begun', async () => {
  const run = newId()
  const { policy } = (await ctx.store.runs({ limit: 1 })).items[0]!
  await ctx.store.enqueue({ id: run, source: 'later', kind: 'single', policy })
  const call = followLogs(['logs', 'later', '-f'])
  await call.until(/^Run [0-9a-f]{8} has printed nothing yet\. Waiting for it\.\n/)
  const { log, claim } = await startCommand('later')
  assert.equal(claim.run, run)
  log.write('out', ['at last'])
  await finish(claim)
  assert.match(await call.said, /out at last\n/)
})

test('without a log on this machine it names the one that has it', async () => {
  const { run } = await startCommand('far', 'crawler-7')
  const { stdout, stderr } = await ctx.cli(['logs', 'far'], 2)
  assert.equal(stdout, '')
  assert.match(
    stderr,
    new RegExp(
      `E_NOT_FOUND: There is no log of run ${shortId(run)} \\(far\\) here. It was made on crawler-7: call \`unstuck logs ${shortId(run)}\` there.`,
    ),
  )
  assert.match((await ctx.cli(['logs', 'far', '-f'], 2)).stderr, /made on crawler-7/)
})

test('output of an earlier attempt is shown, with a note about the newest', async () => {
  const { log } = await startCommand('moved', 'crawler-7')
  log.write('out', ['here'])
  const { stdout, stderr } = await ctx.cli(['logs', 'moved'])
  assert.match(stdout, /out here\n$/)
  assert.match(stderr, /^Its newest attempt ran on crawler-7\. This is what is here, in \//)
})

test('it reports that no command was started, or that the log was removed', async () => {
  const removed = await startCommand('removed')
  rmSync(createRunFolder(ctx.cwd, removed.run).folder, { recursive: true })
  assert.match(
    (await ctx.cli(['logs', 'removed'], 2)).stderr,
    new RegExp(
      `Its output was in /.*${removed.run} and was removed, by \`--keep-output\` or by hand\\. ` +
        `How each start ended is kept: \`unstuck show ${shortId(removed.run)}\`\\.`,
    ),
  )
  // The files it wrote are there, its log is not.
  createRunFolder(ctx.cwd, removed.run)
  assert.match((await ctx.cli(['logs', 'removed'], 2)).stderr, /It was in \/.*output\.log/)
  await beginOne(ctx.store, await ctx.registerLiveWorker('own-code'), { source: 'own-code' })
  assert.match((await ctx.cli(['logs', 'own-code'], 2)).stderr, /No command was started for it/)
  await enqueueCrawl(ctx.store, 1, { source: 'crawl' })
  assert.match((await ctx.cli(['logs', 'crawl'], 2)).stderr, /its workers keep journals/)
})

test('a path in the database that is not the log of the run is not read', async () => {
  const secret = join(ctx.cwd, 'secret')
  writeFileSync(secret, '2026-11-16T10:00:00.000Z out hunter2\n')
  const { run } = await startCommand('pointed', hostname(), secret)
  const { stdout } = await ctx.cli(['logs', 'pointed'], 2)
  assert.equal(stdout, '')
  const { logPath } = createRunFolder(ctx.cwd, run)
  new LogFile(logPath).write('out', ['mine'])
  assert.match((await ctx.cli(['logs', 'pointed'])).stdout, /^.* out mine\n$/)
})

test('invalid arguments are rejected with advice', async () => {
  const unknown = await ctx.cli(['logs', 'nowhere'], 2)
  assert.match(unknown.stderr, /There is no run or source nowhere\. `unstuck runs` lists them\./)
  const lines = await ctx.cli(['logs', 'shop', '--lines', 'some'], 2)
  assert.match(lines.stderr, /--lines must be a whole number from 1 to 1000000, or all, not "some"/)
  const stream = await ctx.cli(['logs', 'shop', '--stream', 'stdout'], 2)
  assert.match(stream.stderr, /--stream must be one of out, err, run/)
})
