import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './sqlite-engine.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * A project as a user has it after `npm install`, under a name of choice. The package in it leads to this checkout's
 * own TypeScript, so that nothing has to be built.
 */
export function emptyProject(name: string): Disposable & { path: string } {
  const parent = temporaryFolder()
  const path = join(parent.path, name)
  const unstuck = join(path, 'node_modules', 'unstuck')
  mkdirSync(unstuck, { recursive: true })
  writeFileSync(join(path, 'package.json'), '{ "private": true, "type": "module" }')
  const exports = { '.': './index.js', './next': './next.js' }
  const manifest = { name: 'unstuck', type: 'module', exports }
  writeFileSync(join(unstuck, 'package.json'), JSON.stringify(manifest))
  for (const entry of ['index', 'next']) {
    const { href } = new URL(`../${entry}.ts`, import.meta.url)
    writeFileSync(join(unstuck, `${entry}.js`), `export * from ${JSON.stringify(href)}\n`)
  }
  symlinkSync(join(ROOT, 'bin'), join(unstuck, 'bin'))
  return { path, [Symbol.dispose]: () => parent[Symbol.dispose]() }
}
