import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { PassThrough, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { nearestConfig } from '../lib/files/config-file.ts'
import { reportError, runCli } from '../interfaces/cli/main.ts'
import type { Streams } from '../interfaces/cli/output.ts'

const BIN = fileURLToPath(new URL('../../bin/unstuck.js', import.meta.url))

export type CliResult = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}
type CliOptions = {
  readonly cwd: string
  readonly env?: NodeJS.ProcessEnv
  readonly stopAfter?: RegExp
}

/** How the real command line is called: its words, and an environment that has no say in what it prints. */
export function cliCommand(args: readonly string[]): { command: string[]; env: NodeJS.ProcessEnv } {
  return { command: [process.execPath, BIN, ...args], env: cleanEnv() }
}

function cleanEnv(): NodeJS.ProcessEnv {
  const { NO_COLOR: _, FORCE_COLOR: __, UNSTUCK_DB: ___, COLUMNS: ____, ...clean } = process.env
  return clean
}

/** Commands that run for long, start processes or handle signals. */
const LONG_RUNNING = ['chaos', 'demo', 'run', 'serve', 'top', 'work']
const LONG_RUNNING_FLAG = /^(--watch|-w|--follow|-f)$/

/**
 * Runs a command of the command line, piped. A command that ends by itself runs in this process, which takes a tenth of
 * the CPU time of a process of its own; those of one test process run one after the other.
 */
export function unstuck(args: readonly string[], options: CliOptions): Promise<CliResult> {
  const needsProcess =
    options.stopAfter !== undefined ||
    options.env?.['NODE_OPTIONS'] !== undefined ||
    args.some((arg) => LONG_RUNNING_FLAG.test(arg) || LONG_RUNNING.includes(arg))
  return needsProcess || hasStaleConfig(options)
    ? unstuckProcess(args, options)
    : unstuckInProcess(args, options)
}

/** Runs the real command line in a process of its own, piped. `stopAfter`: Ctrl-C once stdout matches it. */
export function unstuckProcess(
  args: readonly string[],
  { cwd, env = {}, stopAfter }: CliOptions,
): Promise<CliResult> {
  const { command, env: clean } = cliCommand(args)
  const child = spawn(command[0]!, command.slice(1), { cwd, env: { ...clean, ...env } })
  let [stdout, stderr, stopped] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    if (stopped || !stopAfter?.test(stdout)) return
    stopped = true
    child.kill('SIGINT')
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

const configs = new Map<string, string>()

/** A module is evaluated once in a process: true if its text or its environment has changed since. */
function hasStaleConfig({ cwd, env = {} }: CliOptions): boolean {
  const path = nearestConfig(cwd)
  if (path === null) return false
  const now = `${JSON.stringify(env)} ${readFileSync(path, 'utf8')}`
  const before = configs.get(path) ?? now
  configs.set(path, before)
  return before !== now
}

let previous: Promise<unknown> = Promise.resolve()

function unstuckInProcess(args: readonly string[], options: CliOptions): Promise<CliResult> {
  const result = previous.then(() => callCommand(args, options))
  previous = result.catch(() => {})
  return result
}

/** The folder and the environment are those of the whole process, so one call at a time. */
async function callCommand(
  args: readonly string[],
  { cwd, env = {} }: CliOptions,
): Promise<CliResult> {
  const written = { stdout: '', stderr: '' }
  const streams = {
    stdin: new PassThrough().end(),
    stdout: collect((text) => (written.stdout += text)),
    stderr: collect((text) => (written.stderr += text)),
  } as unknown as Streams
  const outer = { cwd: process.cwd(), env: { ...process.env }, exitCode: process.exitCode }
  process.chdir(cwd)
  replaceEnv({ ...cleanEnv(), ...env })
  try {
    const code = await runCli(args, streams).catch((error: unknown) =>
      reportError(error, args, streams),
    )
    return { code, ...written }
  } finally {
    process.chdir(outer.cwd)
    replaceEnv(outer.env)
    process.exitCode = outer.exitCode
  }
}

function collect(add: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      add(text)
      done()
    },
  })
}

function replaceEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name]
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined) process.env[name] = value
  }
}
