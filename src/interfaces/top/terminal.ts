import process from 'node:process'
import type { Size } from './frame.ts'
import { flushKeys, parseKeys, type Key } from './keys.ts'

/** A screen of its own, no cursor, and no wrapping: a character that is wider than we think breaks one line, not all. */
const ENTER_SCREEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const LEAVE_SCREEN = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'
const CLEAR = '\x1b[2J'

/** A sequence arrives in one piece or nearly so; Escape alone is followed by nothing. */
const ESCAPE_MS = 50
/** Longer than it takes to be stopped: what comes later comes after `fg`. */
const SUSPEND_MS = 100

export type Terminal = {
  readonly size: Size
  /** Over ssh every byte counts: only lines that changed are sent. */
  draw(lines: readonly string[]): void
  /** The next drawing is a whole one. */
  clear(): void
  /** Gives the terminal back and stops, as Ctrl-Z does for every program; comes back with `fg`. Nothing on Windows. */
  suspend(): void
  /** Gives the terminal back as it was. Safe to repeat. */
  close(): void
}

export type Listeners = {
  readonly onKey: (key: Key) => void
  /** It has another size, or its content is lost. */
  readonly onChange: () => void
  /** It is gone, or somebody asked us to end. */
  readonly onEnd: () => void
}

/** Takes the terminal for the whole screen. However the process ends, short of kill -9, it is given back as it was. */
export function openTerminal({ onKey, onChange, onEnd }: Listeners): Terminal {
  const { stdin, stdout } = process
  let drawn: readonly string[] = []
  let isAcquired = false
  let rest = ''
  let escape: NodeJS.Timeout | undefined

  const acquire = (): void => {
    isAcquired = true
    drawn = []
    stdin.setRawMode(true)
    stdin.resume()
    stdout.write(ENTER_SCREEN)
  }
  const release = (): void => {
    if (!isAcquired) return
    isAcquired = false
    stdout.write(LEAVE_SCREEN)
    stdin.setRawMode(false)
    stdin.pause()
  }
  const onData = (sent: string): void => {
    clearTimeout(escape)
    const read = parseKeys(rest + sent)
    rest = read.rest
    read.keys.forEach(onKey)
    if (rest === '') return
    escape = setTimeout(() => {
      const keys = flushKeys(rest)
      rest = ''
      keys.forEach(onKey)
    }, ESCAPE_MS)
  }
  const suspend = (): void => {
    // There nothing would bring us back.
    if (process.platform === 'win32') return
    release()
    process.off('SIGTSTP', suspend)
    // To the whole group, as the terminal does it: whoever started us waits with us.
    process.kill(0, 'SIGTSTP')
    setTimeout(() => {
      process.on('SIGTSTP', suspend)
      acquire()
      onChange()
    }, SUSPEND_MS)
  }
  const redraw = (): void => {
    drawn = []
    onChange()
  }

  stdin.setEncoding('utf8').on('data', onData).on('end', onEnd).on('error', onEnd)
  stdout.on('resize', redraw)
  process.on('SIGTERM', onEnd).on('SIGINT', onEnd).on('SIGHUP', onEnd)
  process.on('SIGTSTP', suspend).on('SIGCONT', redraw)
  // A crash is reported after this, on the terminal as it was.
  process.on('uncaughtExceptionMonitor', release).on('exit', release)
  acquire()

  return {
    get size() {
      return { columns: stdout.columns || 80, rows: stdout.rows || 24 }
    },
    draw(lines) {
      if (!isAcquired) return
      const changed = lines.flatMap((line, n) =>
        line === drawn[n] ? [] : [`\x1b[${n + 1};1H${line}\x1b[K`],
      )
      const start = drawn.length === 0 ? CLEAR : ''
      drawn = [...lines]
      if (changed.length > 0) stdout.write(`${start}${changed.join('')}`)
    },
    clear() {
      drawn = []
    },
    suspend,
    close() {
      clearTimeout(escape)
      release()
      stdin.off('data', onData).off('end', onEnd).off('error', onEnd)
      stdout.off('resize', redraw)
      process.off('SIGTERM', onEnd).off('SIGINT', onEnd).off('SIGHUP', onEnd)
      process.off('SIGTSTP', suspend).off('SIGCONT', redraw)
      process.off('uncaughtExceptionMonitor', release).off('exit', release)
    },
  }
}
