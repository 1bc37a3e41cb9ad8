import assert from 'node:assert/strict'
import { unstuck } from './unstuck-cli.ts'

export type DoctorCheck = {
  readonly check: string
  readonly result: string
  readonly found: string
  readonly details: string[]
  readonly why: string | null
  readonly fix: string | null
}

/** What `unstuck doctor --json` said. */
export type DoctorReport = {
  readonly code: number | null
  readonly stdout: string
  readonly data: { result: string; summary: string; checks: DoctorCheck[] }
  has(check: string): boolean
  /** A check that must be there. */
  getCheck(check: string): DoctorCheck
  /** Asserts that all is well but for these. */
  assertOnlyProblems(...troubled: string[]): void
}

/** These look at the machine that the tests run on, so their result is not known beforehand. */
const MACHINE_CHECKS = ['disk', 'platform', 'signals', 'processes', 'connections']

/** So does this: a busy machine is slow. */
const SLOW_RESPONSE = / responds in /

export async function runDoctor(
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<DoctorReport> {
  const { code, stdout, stderr } = await unstuck(['doctor', '--json', ...args], options)
  assert.equal(stderr, '')
  const data = JSON.parse(stdout) as DoctorReport['data']
  const find = (name: string): DoctorCheck | undefined =>
    data.checks.find(({ check }) => check === name)
  return {
    code,
    stdout,
    data,
    has: (name) => find(name) !== undefined,
    getCheck(name) {
      const check = find(name)
      assert.ok(check, `there is no ${name} in ${stdout}`)
      return check
    },
    assertOnlyProblems(...troubled) {
      const expected = [...MACHINE_CHECKS, ...troubled]
      const others = data.checks.filter(
        ({ check, result, found }) =>
          result !== 'ok' && !expected.includes(check) && !SLOW_RESPONSE.test(found),
      )
      assert.deepEqual(others, [])
    },
  }
}
