import { spawn } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

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
  const { NO_COLOR: _, FORCE_COLOR: __, UNSTUCK_DB: ___, COLUMNS: ____, ...clean } = process.env
  return { command: [process.execPath, BIN, ...args], env: clean }
}

/** Runs the real command line, piped. `stopAfter`: Ctrl-C once stdout says so. */
export function unstuck(
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
