import { once } from 'node:events'
import process from 'node:process'
import { createInterface } from 'node:readline/promises'
import { styleText } from 'node:util'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { messageOf } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { Output } from '../../contracts/command.ts'

export const COLOUR_CHOICES = ['auto', 'always', 'never'] as const
export type ColourChoice = (typeof COLOUR_CHOICES)[number]

/** The streams a command reads and writes: those of the process, except in tests. */
export type Streams = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr'>

export function makeOutput(colour: ColourChoice, streams: Streams): Output {
  const { stdout, stderr } = streams
  return {
    isTerminal: stdout.isTTY,
    get columns() {
      return columnsOf(stdout)
    },
    get rows() {
      return stdout.rows || 24
    },
    async write(text) {
      if (text === '' || stdout.destroyed) return
      if (!stdout.write(text)) await once(stdout, 'drain').catch(ignoreClosedPipe)
    },
    makeWriter: (columns = columnsOf(stdout)) => new TextWriter(columns, hasColour(colour, stdout)),
    note(text) {
      stderr.write(`${safeText(redact(text))}\n`)
    },
    get canAsk() {
      return streams.stdin.isTTY && stderr.isTTY
    },
    async ask(question) {
      if (!streams.stdin.isTTY || !stderr.isTTY) return null
      const lines = createInterface({ input: streams.stdin, output: stderr })
      try {
        return (await lines.question(`${safeText(question)} `)).trim()
      } catch (error) {
        if (!(error instanceof Error && error.name === 'AbortError')) throw error
        // Ctrl-C and Ctrl-D are a no.
        stderr.write('\n')
        return ''
      } finally {
        lines.close()
      }
    },
  }
}

/** `auto` leaves it to Node: NO_COLOR, FORCE_COLOR, TERM=dumb and whether it is a terminal. */
export function hasColour(choice: ColourChoice, stream: NodeJS.WriteStream): boolean {
  if (choice !== 'auto') return choice === 'always'
  return styleText('bold', 'x', { stream }) !== 'x'
}

/** A pipe has no width: its reader gets whole lines, unless COLUMNS is set. */
export function columnsOf(stream: NodeJS.WriteStream): number {
  if (stream.isTTY) return stream.columns || 80
  const columns = Number(process.env['COLUMNS'])
  return Number.isInteger(columns) && columns > 0 ? columns : Infinity
}

/** Exits without an error when the reader closes the pipe, as `| head` does. Any other error of stdout is a failure. */
export function onClosedStdout(ignoresClosedPipe: boolean): void {
  const leave = (error: Error): void => {
    if (ignoresClosedPipe) return
    if (isClosedPipe(error)) process.exit(EXIT.done)
    process.stderr.write(`The output could not be written: ${messageOf(error)}\n`)
    process.exit(EXIT.failed)
  }
  process.stdout.removeAllListeners('error').on('error', leave)
  process.stderr.removeAllListeners('error').on('error', () => {})
}

function ignoreClosedPipe(error: unknown): void {
  if (!isClosedPipe(error)) throw error
}

function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE'
}
