import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, StoreUnavailableError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { redact } from '../../core/model/redact.ts'
import { safeJson } from '../../lib/text/safe-text.ts'
import { untilInterrupted } from '../../lib/process/until-interrupted.ts'
import { makeScreen } from '../../lib/terminal/screen.ts'
import type { CommandResult, Output } from '../../contracts/command.ts'

const TERMINAL_EVERY_MS = 1_000
/** A log that is read later wants fewer blocks than a screen that is read now. */
const PLAIN_EVERY_MS = 10_000

type LoadResult = () => Promise<CommandResult | number | void>

/** Repeats a command until Ctrl-C. While the database is unreachable, reports that and retries. */
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
      const failure = `The database does not answer; trying again. ${redact(messageOf(error))}`
      if (screen) await screen.draw(`${last}\n${failure}\n`)
      else output.note(failure)
    }
    await sleep(everyMs, undefined, { signal: stopped }).catch(() => {})
  }
  // The terminal has put its ^C where the prompt would go.
  if (screen) await output.write('\n')
  return EXIT.done
}
