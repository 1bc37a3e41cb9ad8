import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { cliCommand } from '../../../testing/unstuck-cli.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { platformFinding, PLATFORMS, readHostFacts, type HostFacts } from './platform.ts'

const PAGE = new URL('../../../../docs/reference/platforms.md', import.meta.url)

test('the finding names what this machine shows, and what follows for the database', () => {
  const found = (host: HostFacts, db: string | null): string[] => {
    const { result, found } = platformFinding(host, db)
    return [result, found]
  }
  const linux: HostFacts = { platform: 'linux', namespace: 'host' }
  const container: HostFacts = { platform: 'linux', namespace: 'own' }
  const mac: HostFacts = { platform: 'darwin', namespace: null }
  const windows: HostFacts = { platform: 'win32', namespace: null }
  for (const [host, db, result, text] of [
    [linux, 'postgres://x', 'ok', /^Linux: .* within a second on the same machine; /],
    [linux, null, 'ok', /^Linux: the kernel shows every process of this machine\.$/],
    [container, 'sqlite:x', 'ok', /^Linux, in a container: .* frees its lock file, in any /],
    [container, 'postgres://x', 'note', /same container; in another one after a few seconds/],
    [mac, 'sqlite:x', 'note', /^darwin: no process is visible, .* frees its lock file\.$/],
    [mac, 'postgres://x', 'note', /^darwin: .* claimed after a few seconds without a heartbeat/],
    [windows, null, 'note', /^Windows: no process is visible/],
    // A Linux whose /proc is not mounted or may not be read.
    [{ platform: 'linux', namespace: null }, null, 'note', /^linux: no process is visible/],
  ] as const) {
    const [actual, sentence] = found(host, db)
    assert.equal(actual, result, sentence)
    assert.match(sentence!, text)
  }
})

test('docs/reference/platforms.md has the sentences of doctor', () => {
  const page = readFileSync(PAGE, 'utf8')
  for (const { name, processes, sqlite, postgres } of Object.values(PLATFORMS)) {
    assert.ok(page.includes(`\n| ${name} | ${processes} | ${sqlite} | ${postgres} |\n`), name)
  }
})

test(
  'the facts are those of this very system',
  { skip: process.platform === 'linux' ? false : 'only Linux has /proc' },
  () => {
    const isHost = readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]'
    assert.deepEqual(readHostFacts(), { platform: 'linux', namespace: isHost ? 'host' : 'own' })
  },
)

const UNSHARE = ['--user', '--map-root-user', '--pid', '--fork', '--mount-proc']
const canUnshare = spawnSync('unshare', [...UNSHARE, 'true']).status === 0

test(
  'in a pid namespace of its own, doctor reports a container; without /proc that no process is visible',
  { skip: canUnshare ? false : 'this system does not let the tests make a pid namespace' },
  () => {
    using folder = temporaryFolder()
    const db = `sqlite:${join(folder.path, 'none.db')}`
    const { command, env } = cliCommand(['doctor', '--json', '--db', db])
    const platform = (script: string): string => {
      const { stdout, stderr } = spawnSync(
        'unshare',
        [...UNSHARE, 'sh', '-c', script, ...command],
        { cwd: folder.path, env, encoding: 'utf8' },
      )
      assert.ok(stdout, stderr)
      const { checks } = JSON.parse(stdout) as { checks: { check: string; found: string }[] }
      return checks.find(({ check }) => check === 'platform')!.found
    }
    assert.match(platform('exec "$0" "$@"'), /^Linux, in a container: only processes of the same/)
    const hidden = 'mount -t tmpfs none /proc && exec "$0" "$@"'
    assert.match(platform(hidden), /^linux: no process is visible, because there is no \/proc/)
  },
)
