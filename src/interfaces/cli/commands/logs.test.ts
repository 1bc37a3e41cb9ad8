import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId, shortId, type RunId } from '../../../core/model/id.ts'
import type { Claimed } from '../../../core/model/claim.ts'
import { makeRunFolder } from '../../../lib/files/data-folder.ts'
import { LogFile } from '../../../features/commands/log-file.ts'
import { beginOne, startCrawl } from '../../../testing/fixtures.ts'
import { EVIL, HOSTILE, operator, type Operator } from '../../../testing/operator.ts'
import { cliCall, unstuck } from '../../../testing/unstuck-cli.ts'

let person: Operator
before(async () => {
  person = await operator()
})
after(() => person[Symbol.asyncDispose]())

type Command = { readonly run: RunId; readonly claim: Claimed; readonly log: LogFile }

/** A run whose command was started here, or on another host. */
async function started(source: string, host = hostname(), log?: string): Promise<Command> {
  const worker = await person.present(source)
  const claim = await beginOne(person.store, worker, { source })
  const places = makeRunFolder(person.cwd, claim.run)
  await person.store.startExecution({
    id: newId(),
    run: claim.run,
    worker,
    host,
    command: ['python', 'scrape.py'],
    outputDir: places.outputDir,
    log: log ?? places.log,
    startedAt: await person.store.now(),
    end: null,
  })
  return { run: claim.run, claim, log: new LogFile(places.log) }
}

async function finish(claim: Claimed): Promise<void> {
  await person.store.finish([claim])
  await person.store.settle()
}

test('what a command printed is shown with its times, by the id of the run or by its source', async () => {
  const { run, log } = await started('shop')
  log.note('started attempt 1, process 12')
  log.write('out', ['page 1', '東京'])
  log.write('err', ['careful'])
  const { stdout, stderr } = await person.call(['logs', shortId(run)])
  assert.equal(stderr, '')
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}`
  assert.match(
    stdout,
    new RegExp(
      `^${time} run started attempt 1, process 12\n${time} out page 1\n${time} out 東京\n${time} err careful\n$`,
    ),
  )
  assert.equal((await person.call(['logs', 'shop'])).stdout, stdout)
  assert.equal((await person.call(['logs', run])).stdout, stdout)
  const narrow = await person.call(['logs', 'shop'], 0, 20)
  assert.equal(narrow.stdout, stdout)
})

test('of a source the newest run counts', async () => {
  const first = await started('again')
  first.log.write('out', ['first'])
  await finish(first.claim)
  const second = await started('again')
  second.log.write('out', ['second'])
  assert.match((await person.call(['logs', 'again'])).stdout, /second\n$/)
  assert.match((await person.call(['logs', shortId(first.run)])).stdout, /first\n$/)
})

test('lines are chosen by number, stream and age, and come as JSON lines', async () => {
  const { run, log } = await started('chosen')
  const { log: path } = makeRunFolder(person.cwd, run)
  writeFileSync(path, '2020-01-01T00:00:00.000Z out long ago\n')
  log.write('out', ['a', 'b'])
  log.write('err', ['c'])
  log.write('out', ['d'])
  const texts = async (...flags: string[]): Promise<string[]> => {
    const { stdout } = await person.call(['logs', 'chosen', '--json', ...flags])
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

test('a line that somebody planted in the file cannot act on a terminal', async () => {
  const { run, log } = await started('planted')
  log.write('out', ['x'])
  const { log: path } = makeRunFolder(person.cwd, run)
  const evil = EVIL.replaceAll(/[\r\n]/g, '')
  appendFileSync(path, `2026-11-16T10:00:00.000Z out ${evil}\n`)
  assert.doesNotMatch((await person.call(['logs', 'planted'])).stdout, HOSTILE)
  const { stdout } = await person.call(['logs', 'planted', '--json'])
  assert.doesNotMatch(stdout, HOSTILE)
  assert.equal(JSON.parse(stdout.split('\n')[1]!).text, evil)
})

/** A call that is listened to while it lasts. */
function listen(args: readonly string[]): {
  until(seen: RegExp): Promise<void>
  said: Promise<string>
} {
  const { command, env } = cliCall([...args, '--db', person.database.url])
  const child = spawn(command[0]!, command.slice(1), { cwd: person.cwd, env })
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
  const { run, log, claim } = await started('followed')
  log.write('out', ['one'])
  const call = listen(['logs', shortId(run), '-f'])
  await call.until(/out one\n/)
  log.write('out', ['two'])
  await call.until(/out two\n/)
  await finish(claim)
  log.note('ended: exit code 0')
  const end = `run ended: exit code 0\nRun ${shortId(run)} has ended: succeeded\\.\n$`
  assert.match(await call.said, new RegExp(`out one\n.* out two\n.* ${end}`))
})

test('-f ends with Ctrl-C, and that is no failure', async () => {
  const { log } = await started('endless')
  log.write('out', ['one'])
  const { code, stderr } = await unstuck(['logs', 'endless', '-f', '--db', person.database.url], {
    cwd: person.cwd,
    stopAfter: /out one/,
  })
  assert.equal(code, 0)
  assert.equal(stderr, '')
})

test('-f waits for a run that has not begun', async () => {
  const run = newId()
  const { policy } = (await person.store.runs({ limit: 1 })).items[0]!
  await person.store.enqueue({ id: run, source: 'later', kind: 'single', policy })
  const call = listen(['logs', 'later', '-f'])
  await call.until(/^Run [0-9a-f]{8} has printed nothing yet\. Waiting for it\.\n/)
  const { log, claim } = await started('later')
  assert.equal(claim.run, run)
  log.write('out', ['at last'])
  await finish(claim)
  assert.match(await call.said, /out at last\n/)
})

test('without a log here it says where it is', async () => {
  const { run } = await started('far', 'crawler-7')
  const { stdout, stderr } = await person.call(['logs', 'far'], 2)
  assert.equal(stdout, '')
  assert.match(
    stderr,
    new RegExp(
      `E_NOT_FOUND: There is no log of run ${shortId(run)} \\(far\\) here. It was made on crawler-7: call \`unstuck logs ${shortId(run)}\` there.`,
    ),
  )
  assert.match((await person.call(['logs', 'far', '-f'], 2)).stderr, /made on crawler-7/)
})

test('what an earlier attempt printed here is shown, with a word about the newest', async () => {
  const { log } = await started('moved', 'crawler-7')
  log.write('out', ['here'])
  const { stdout, stderr } = await person.call(['logs', 'moved'])
  assert.match(stdout, /out here\n$/)
  assert.match(stderr, /^Its newest attempt ran on crawler-7\. This is what is here, in \//)
})

test('it says so when no command was started, and when the log was removed', async () => {
  const removed = await started('removed')
  rmSync(makeRunFolder(person.cwd, removed.run).folder, { recursive: true })
  assert.match(
    (await person.call(['logs', 'removed'], 2)).stderr,
    new RegExp(
      `Its output was in /.*${removed.run} and was removed, by \`--keep-output\` or by hand\\. ` +
        `How each start ended is kept: \`unstuck show ${shortId(removed.run)}\`\\.`,
    ),
  )
  // The files it wrote are there, its log is not.
  makeRunFolder(person.cwd, removed.run)
  assert.match((await person.call(['logs', 'removed'], 2)).stderr, /It was in \/.*output\.log/)
  await beginOne(person.store, await person.present('own-code'), { source: 'own-code' })
  assert.match((await person.call(['logs', 'own-code'], 2)).stderr, /No command was started for it/)
  await startCrawl(person.store, 1, { source: 'crawl' })
  assert.match((await person.call(['logs', 'crawl'], 2)).stderr, /its workers keep journals/)
})

test('a path in the database that is not the log of the run is not read', async () => {
  const secret = join(person.cwd, 'secret')
  writeFileSync(secret, '2026-11-16T10:00:00.000Z out hunter2\n')
  const { run } = await started('pointed', hostname(), secret)
  const { stdout } = await person.call(['logs', 'pointed'], 2)
  assert.equal(stdout, '')
  const { log } = makeRunFolder(person.cwd, run)
  new LogFile(log).write('out', ['mine'])
  assert.match((await person.call(['logs', 'pointed'])).stdout, /^.* out mine\n$/)
})

test('wrong words are refused with advice', async () => {
  const unknown = await person.call(['logs', 'nowhere'], 2)
  assert.match(unknown.stderr, /There is no run or source nowhere\. `unstuck runs` lists them\./)
  const lines = await person.call(['logs', 'shop', '--lines', 'some'], 2)
  assert.match(lines.stderr, /--lines must be a whole number from 1 to 1000000, or all, not "some"/)
  const stream = await person.call(['logs', 'shop', '--stream', 'stdout'], 2)
  assert.match(stream.stderr, /--stream must be one of out, err, run/)
})
