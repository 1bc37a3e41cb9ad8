import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { test } from 'node:test'
import { ErrorLine } from './error-line.ts'

function errorLineOf(stderr: string): string | null {
  const found = new ErrorLine()
  for (const line of stderr.split('\n')) found.push([line])
  return found.text
}

const REAL: readonly [what: string, command: readonly string[], expected: RegExp][] = [
  [
    'Python, a missing module',
    ['python3', '-c', 'import no_such_module'],
    /^ModuleNotFoundError: No module named 'no_such_module'$/,
  ],
  [
    'Python, the last of chained exceptions',
    ['python3', '-c', 'try:\n  {}["a"]\nexcept KeyError: raise RuntimeError("no page")'],
    /^RuntimeError: no page$/,
  ],
  [
    'Node, although its version comes last',
    [process.execPath, '-e', 'throw Object.assign(new TypeError("no page"), { code: "E_X" })'],
    /^TypeError: no page$/,
  ],
  [
    'Node, an error with a code',
    [process.execPath, '-e', 'require("./no-such-module.cjs")'],
    /^Error: Cannot find module '\.\/no-such-module\.cjs'$/,
  ],
  ['a shell', ['sh', '-c', 'no-such-program'], /no-such-program: (command )?not found$/],
]
for (const [what, [program, ...args], expected] of REAL) {
  test(`the line of a real error: ${what}`, () => {
    const { stderr } = spawnSync(program!, args, { encoding: 'utf8' })
    assert.match(errorLineOf(stderr)!, expected, stderr)
  })
}

const WRITTEN: readonly [what: string, stderr: string, expected: string | null][] = [
  ['nothing', '', null],
  ['empty lines only', '\n  \n\n', null],
  ['a message', 'starting\nno quota left\n\n', 'no quota left'],
  ['indented lines only', '  one\n  two', 'two'],
  [
    'Playwright, with its call log',
    'Traceback (most recent call last):\n  File "a.py", line 3\nplaywright._impl._errors.TimeoutError: Page.goto: Timeout 30000ms exceeded.\nCall log:\n  - navigating to "https://site.example/"\n',
    'playwright._impl._errors.TimeoutError: Page.goto: Timeout 30000ms exceeded.',
  ],
  [
    'Selenium, with the frames of the driver',
    `selenium.common.exceptions.SessionNotCreated: Message: no browser\nStacktrace:\n${'#0 0x55 <unknown>\n'.repeat(30)}`,
    'selenium.common.exceptions.SessionNotCreated: Message: no browser',
  ],
  [
    'Java, its cause',
    'Exception in thread "main" java.lang.RuntimeException: outer\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: inner\n\t... 1 more\n',
    'Caused by: java.io.IOException: inner',
  ],
  [
    'Go',
    'panic: no page\n\ngoroutine 1 [running]:\nmain.main()\n\t/a.go:4 +0x1\nexit status 2\n',
    'panic: no page',
  ],
  [
    'Rust',
    "thread 'main' panicked at src/main.rs:2:5:\nno page\nnote: run with `RUST_BACKTRACE=1`\n",
    'no page',
  ],
  [
    'an error that was handled long before the end',
    `Error: page 3, trying again\n${'page done\n'.repeat(60)}disk is full\n`,
    'disk is full',
  ],
]
for (const [what, stderr, expected] of WRITTEN) {
  test(`the line of an error: ${what}`, () => {
    assert.equal(errorLineOf(stderr), expected)
  })
}

test('a long line is cut between two characters', () => {
  const text = errorLineOf(`Error: ${'😀'.repeat(1_000)}`)!
  assert.ok(text.length <= 300, `${text.length}`)
  assert.ok(text.endsWith('😀…') && text.isWellFormed())
})
