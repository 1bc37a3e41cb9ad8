import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { messageOf, StoreUnavailableError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { redact } from '../../core/model/redact.ts'
import { safeJson } from '../../core/events/safe-text.ts'
import type { CommandResult } from './command.ts'
import type { Output } from './output.ts'
import { widthOf } from '../../lib/terminal/width.ts'

const TERMINAL_EVERY_MS = 1_000
/** A log that is read later wants fewer blocks than a screen that is read now. */
const PLAIN_EVERY_MS = 10_000

type LoadResult = () => Promise<CommandResult | number | void>

/** Looks again and again until Ctrl-C. While the database is away it says so, and goes on. */
export async function watch(
  load: LoadResult,
  { json, output }: { json: boolean; output: Output },
): Promise<number> {
  const stopped = untilInterrupted()
  const screen = output.isTerminal && !json ? makeScreen(output) : null
  const everyMs = screen || json ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS
  let last = ''
  while (!stopped.aborted) {
    try {
      const result = await load()
      if (typeof result !== 'object') return result ?? EXIT.done
      if (json) await output.write(`${safeJson(result.data)}\n`)
      else {
        const writer = output.makeWriter()
        result.print(writer)
        last = writer.toString()
        if (screen) await screen.draw(last)
        else await output.write(`${last}\n`)
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      const trouble = `The database does not answer; trying again. ${redact(messageOf(error))}`
      if (screen) await screen.draw(`${last}\n${trouble}\n`)
      else output.note(trouble)
    }
    await sleep(everyMs, undefined, { signal: stopped }).catch(() => {})
  }
  // The terminal has put its ^C where the prompt would go.
  if (screen) await output.write('\n')
  return EXIT.done
}

/** Aborted by the first Ctrl-C or SIGTERM; a second one ends the process as usual. */
export function untilInterrupted(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  return controller.signal
}

type Screen = { draw(text: string): Promise<void> }

/**
 * Draws over its last drawing, on the normal screen: what was there before stays, and the last state is still
 * there after Ctrl-C. A terminal made narrower has wrapped the old lines, so their height is taken anew.
 */
export function makeScreen(output: Pick<Output, 'columns' | 'rows' | 'write'>): Screen {
  let drawn: string[] = []
  return {
    async draw(text) {
      const lines = fit(text.split('\n').slice(0, -1), output.rows - 1)
      const height = drawn.reduce((sum, line) => sum + rowsOf(line, output.columns), 0)
      const up = height > 0 ? `\x1b[${Math.min(height, output.rows - 1)}A\r` : ''
      drawn = lines
      await output.write(`${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`)
    },
  }
}

function fit(lines: string[], rows: number): string[] {
  if (lines.length <= rows) return lines
  return [...lines.slice(0, rows - 1), `… ${lines.length - rows + 1} more lines`]
}

function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(line)) / columns))
}
