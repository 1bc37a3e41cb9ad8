import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { noPython, PACKAGE, PYTHON, PYTHON_ENV } from './python.ts'

const run = promisify(execFile)

const options = { cwd: PACKAGE, env: { ...process.env, ...PYTHON_ENV } }

test('the tests of the Python package pass', { skip: noPython }, async () => {
  const { stderr } = await run(PYTHON, ['-m', 'unittest', 'discover', '-s', 'tests'], options)
  assert.match(stderr, /^OK/m)
})

const COMPILE = `
import pathlib, sys
for path in sys.argv[1:]:
    for file in pathlib.Path(path).rglob('*.py'):
        compile(file.read_bytes(), str(file), 'exec')
`

test('the package and the examples compile without a warning', { skip: noPython }, async () => {
  const folders = [PACKAGE, join(PACKAGE, '../examples/python')]
  await run(PYTHON, ['-W', 'error', '-c', COMPILE, ...folders], options)
})

test('the reference names everything that the package exports', () => {
  const exports = readFileSync(join(PACKAGE, 'src/unstuck_client/__init__.py'), 'utf8')
  const [, list = ''] = /__all__ = \[([^\]]*)\]/.exec(exports)!
  const names = [...list.matchAll(/"(\w+)"/g)].map(([, name]) => name!)
  const page = readFileSync(join(PACKAGE, '../docs/reference/python.md'), 'utf8')
  assert.ok(names.length > 30)
  assert.deepEqual(
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(page)),
    [],
  )
})
