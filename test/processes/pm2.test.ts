import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { findModule, notInstalled } from '../../bench/packages.ts'
import { emptyProject } from '../../src/testing/empty-project.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { kill, ProcessTestContext, waitFor } from './harness.ts'
import { lifetimes, overlaps, ticks } from './wrapped.ts'

/** The real PM2, with a daemon and a home of the test's own. */

const PM2 = findModule('pm2/bin/pm2')
const skip = PM2 ? false : notInstalled('pm2')

/**
 * Works page by page, 400 ms each, and ends at the end of a page when it is asked to. It ticks every 5 ms, as does a
 * grandchild of it that has left its group and is deaf to signals.
 */
const PAGES = `
exec 9<> <(:)
tick() { echo "$1 $2 $EPOCHREALTIME" >> "$STAGE/ticks"; read -t 0.005 -u 9; }
export -f tick
copy=$$
setsid bash -c 'exec 9<> <(:); trap "" TERM INT; while :; do tick '$copy' grandchild; done' &
asked=; trap 'asked=1' TERM INT
for (( page = 1; ; page++ )); do
  echo "$copy $page begun" >> "$STAGE/pages"
  for (( i = 0; i < 60; i++ )); do tick $copy leader; done
  echo "$copy $page saved" >> "$STAGE/pages"
  if [ "$asked" ]; then exit 0; fi
done
`

/** A socket's path may not be longer than 108 letters, and PM2 keeps some in its home. */
const home = mkdtempSync('/tmp/pm2-')
const ctx = await ProcessTestContext.create(sqliteEngine)
const project = emptyProject('project')
const cwd = project.path
writeFileSync(join(cwd, 'pages.sh'), PAGES)
const env = {
  ...process.env,
  PM2_HOME: home,
  PM2_DISABLE_VERSION_CHECK: '1',
  PATH: `${join(process.execPath, '..')}:${process.env['PATH']}`,
  NODE_TEST_CONTEXT: '',
  STAGE: ctx.folder,
  UNSTUCK_DB: ctx.database.url,
}

function pm2(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PM2!, ...args], {
    cwd,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 0, `pm2 ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}

const daemon = (): number => Number(readFileSync(join(home, 'pm2.pid'), 'utf8'))
const copies = (): string[] => lifetimes(ticks(ctx)).map(({ copy }) => copy)

/** Waits until one more copy than before works, and answers when it has begun a second page. */
async function waitForNextCopy(before: number): Promise<void> {
  await waitFor(`copy ${before + 1}`, () => copies().length === before + 1)
  const copy = copies().at(-1)!
  await waitFor('it is in the middle of a page', () => pages(copy, 'begun') > 1)
}

function pages(copy: string, what: string): number {
  const lines = readFileSync(join(ctx.folder, 'pages'), 'utf8').split('\n')
  return lines.filter((line) => line.startsWith(`${copy} `) && line.endsWith(what)).length
}

/** Of those that have ended. */
function assertInOrder(ended: readonly string[]): void {
  assert.deepEqual(overlaps(ticks(ctx)), [])
  for (const copy of ended) {
    assert.equal(pages(copy, 'saved'), pages(copy, 'begun'), `copy ${copy} was cut short`)
  }
}

after(async () => {
  if (PM2) spawnSync(process.execPath, [PM2, 'kill'], { env })
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  await ctx[Symbol.asyncDispose]()
  project[Symbol.dispose]()
})

const COMMAND = ['run', 'portal', '--kill-timeout', '2s', '--', 'bash', 'pages.sh']

test(
  'the file that init writes, around a command: restarted and reloaded in the middle of a page, one copy at a time, no page cut short',
  { skip },
  async () => {
    const { code, stderr } = await unstuck(['init', '--for', 'pm2'], { cwd })
    assert.equal(code, 0, stderr)
    const file = join(cwd, 'ecosystem.config.cjs')
    const written = readFileSync(file, 'utf8')
    const around = written.replace(/^( +args: ).*,$/m, `$1${JSON.stringify(COMMAND)},`)
    assert.notEqual(around, written)
    writeFileSync(file, around)
    pm2('start', 'ecosystem.config.cjs')
    await waitForNextCopy(0)
    pm2('restart', 'unstuck-example')
    await waitForNextCopy(1)
    pm2('reload', 'unstuck-example')
    await waitForNextCopy(2)
    assertInOrder(copies().slice(0, -1))
  },
)

test(
  'the daemon killed -9 and its processes resurrected: still one copy, and no page cut short',
  { skip },
  async () => {
    pm2('save')
    kill(daemon(), 'SIGKILL')
    pm2('resurrect')
    await waitForNextCopy(3)
    assertInOrder(copies().slice(0, -1))
  },
)

test(
  'with PM2’s own defaults, which signal every process of the tree: the same',
  { skip },
  async () => {
    pm2('delete', 'unstuck-example')
    const how = ['--interpreter', 'none', '--kill-timeout', '8000', '--name', 'portal']
    pm2('start', 'node_modules/unstuck/bin/unstuck.js', ...how, '--', ...COMMAND)
    await waitForNextCopy(4)
    pm2('restart', 'portal')
    await waitForNextCopy(5)
    pm2('stop', 'portal')
    assertInOrder(copies())
  },
)

test(
  'nothing is left over, and the history knows every stop for what it was',
  { skip },
  async () => {
    pm2('kill')
    await ctx.assertNoProcessesLeft()
    assertInOrder(copies())
    assert.equal(copies().length, 6)
    const run = await ctx.run('portal')
    assert.equal(run.status, 'interrupted')
    assert.equal(run.error, null)
  },
)
