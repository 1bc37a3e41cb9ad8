import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { mountedStory } from '../src/testing/mounted-story.ts'
import { sqliteEngine, temporaryFolder } from '../src/testing/sqlite-engine.ts'

/** `examples/next-dashboard` with the package as users get it, built and started by Next.js itself. */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const NEXT = join(MODULES, 'next', 'dist', 'bin', 'next')

/** The quick way through a build: no page is drawn beforehand, and nothing made small. */
const BUILD = ['build', '--experimental-build-mode', 'compile']
const CONFIG = `
  import example from './example.config.js'
  export default { ...example, turbopack: { root: '/' }, experimental: { turbopackMinify: false } }
`

function setUp(app: string): void {
  const example = join(ROOT, 'examples', 'next-dashboard')
  cpSync(join(example, 'app'), join(app, 'app'), { recursive: true })
  cpSync(join(example, 'next.config.js'), join(app, 'example.config.js'))
  writeFileSync(join(app, 'next.config.js'), CONFIG)
  writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
  const unstuck = join(app, 'node_modules', 'unstuck')
  mkdirSync(unstuck, { recursive: true })
  for (const name of ['next', 'react', 'react-dom'])
    symlinkSync(join(MODULES, name), join(app, 'node_modules', name))
  for (const name of ['package.json', 'docs'])
    cpSync(join(ROOT, name), join(unstuck, name), { recursive: true })
  symlinkSync(MODULES, join(unstuck, 'node_modules'))
  const tsc = [
    '-p',
    join(ROOT, 'tsconfig.build.json'),
    '--noCheck',
    '--outDir',
    join(unstuck, 'dist'),
  ]
  run([join(MODULES, 'typescript', 'bin', 'tsc'), ...tsc], ROOT)
  const dashboard = join(ROOT, 'dist', 'dashboard')
  if (existsSync(dashboard))
    cpSync(dashboard, join(unstuck, 'dist', 'dashboard'), { recursive: true })
}

function run(args: readonly string[], cwd: string): void {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 0, `${stdout}${stderr}`)
}

test('it mounts as route handlers of Next.js', { skip: !existsSync(NEXT) }, async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  using app = temporaryFolder()
  setUp(app.path)
  run([NEXT, ...BUILD], app.path)
  const server = spawn(process.execPath, [NEXT, 'start', '-p', '0', '-H', '127.0.0.1'], {
    cwd: app.path,
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', UNSTUCK_DB: database.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    let said = ''
    let port: string | undefined
    for await (const text of server.stdout.setEncoding('utf8')) {
      said += text
      port = /Ready in/.test(said) ? /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1] : undefined
      if (port !== undefined) break
    }
    assert.ok(port, said)
    await mountedStory(`http://127.0.0.1:${port}/unstuck`, store)
  } finally {
    const ended = once(server, 'exit')
    server.kill('SIGKILL')
    await ended
  }
})
