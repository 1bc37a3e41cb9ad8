import assert from 'node:assert/strict'
import { unstuck } from './unstuck-cli.ts'

export type Check = {
  readonly check: string
  readonly result: string
  readonly found: string
  readonly details: string[]
  readonly why: string | null
  readonly mend: string | null
}

/** What `unstuck doctor --json` said. */
export type Report = {
  readonly code: number | null
  readonly stdout: string
  readonly data: { result: string; summary: string; checks: Check[] }
  has(check: string): boolean
  /** A check that must be there. */
  found(check: string): Check
  /** Asserts that all is well but for these. */
  assertOnly(...troubled: string[]): void
}

/** These look at the machine that the tests run on, so their result is not known beforehand. */
const OF_THIS_MACHINE = ['disk', 'platform', 'signals', 'processes', 'connections']

/** So does this: a busy machine is slow. */
const SLOWNESS = / answers in /

export async function askDoctor(
  args: readonly string[],
  where: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<Report> {
  const { code, stdout, stderr } = await unstuck(['doctor', '--json', ...args], where)
  assert.equal(stderr, '')
  const data = JSON.parse(stdout) as Report['data']
  const find = (name: string): Check | undefined => data.checks.find(({ check }) => check === name)
  return {
    code,
    stdout,
    data,
    has: (name) => find(name) !== undefined,
    found(name) {
      const check = find(name)
      assert.ok(check, `there is no ${name} in ${stdout}`)
      return check
    },
    assertOnly(...troubled) {
      const expected = [...OF_THIS_MACHINE, ...troubled]
      const others = data.checks.filter(
        ({ check, result, found }) =>
          result !== 'ok' && !expected.includes(check) && !SLOWNESS.test(found),
      )
      assert.deepEqual(others, [])
    },
  }
}
