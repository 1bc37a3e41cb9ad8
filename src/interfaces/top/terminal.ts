import process from 'node:process'
import type { Size } from './frame.ts'

/** The alternate screen without cursor and without wrapping: a character that is wider than measured breaks one line, not all. */
const ENTER_SCREEN = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
const LEAVE_SCREEN = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'
const CLEAR = '\x1b[2J'

/** A sequence arrives in one piece, or almost; nothing follows a single Escape. */
const ESCAPE_MS = 50
/** Longer than it takes to be stopped: the timer fires after `fg`. */
const SUSPEND_MS = 100

export type Terminal = {
  readonly size: Size
  /** Sends only lines that changed: over ssh every byte counts. */
  draw(lines: readonly string[]): void
  /** Makes the next drawing a complete one. */
  clear(): void
  /** Restores the terminal and stops the process, as Ctrl-Z does; `fg` continues. Does nothing on Windows. */
  suspend(): void
  /** Restores the terminal. Safe to repeat. */
  close(): void
}

export type Listeners = {
  readonly onKey: (key: Key) => void
  /** The size changed, or the content is lost. */
  readonly onChange: () => void
  /** The terminal is gone, or a signal asks the process to end. */
  readonly onEnd: () => void
}

/** Takes over the whole terminal. It is restored however the process ends, except by kill -9. */
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
    // Windows has no way to continue it.
    if (process.platform === 'win32') return
    release()
    process.off('SIGTSTP', suspend)
    // To the whole process group, as the terminal does: a parent such as npx stops too.
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
  // A crash is reported after this, on the restored terminal.
  process.on('uncaughtExceptionMonitor', release).on('exit', release)
  acquire()

  return {
    get size() {
      return { columns: stdout.columns || 80, rows: stdout.rows || 24 }
    },
    draw(lines) {
      if (!isAcquired) return
      const changed = lines.flatMap((line, n) =>
        // Erased before it is written: after a full line, `\\x1b[K` would erase the last character.
        line === drawn[n] ? [] : [`\x1b[${n + 1};1H\x1b[2K${line}`],
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

/** A key by its name, or the character it types. */
export type Key = string

const NAMES: Readonly<Record<string, Key>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'ctrl-c',
  '\x1a': 'ctrl-z',
  '\f': 'ctrl-l',
  '\x1b': 'escape',
}

/** By the end of a sequence; what stands before it names modifiers, which are ignored. */
const SEQUENCES: Readonly<Record<string, Key>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  Z: 'back-tab',
  '1~': 'home',
  '4~': 'end',
  '5~': 'page-up',
  '6~': 'page-down',
  '7~': 'home',
  '8~': 'end',
}

// oxlint-disable-next-line no-control-regex
const SEQUENCE = /^\x1b(?:\[([\d;?<]*)([A-Za-z~])|O([A-Z]))/
// oxlint-disable-next-line no-control-regex
const INCOMPLETE_SEQUENCE = /^\x1b(?:\[[\d;?<]*|O)?$/

/**
 * Parses the keys in the input of a terminal; unknown sequences are dropped. `rest`: the start of a sequence whose end
 * is missing, or Escape itself, which only time can tell apart.
 */
export function parseKeys(input: string): { keys: Key[]; rest: string } {
  const keys: Key[] = []
  for (let left = input; left !== '';) {
    if (INCOMPLETE_SEQUENCE.test(left)) return { keys, rest: left }
    const sequence = SEQUENCE.exec(left)
    if (sequence) {
      const [all, digits = '', end, other] = sequence
      const key = SEQUENCES[end === '~' ? `${digits.split(';')[0]}~` : (end ?? other)!]
      if (key) keys.push(key)
      left = left.slice(all.length)
      continue
    }
    const char = String.fromCodePoint(left.codePointAt(0)!)
    const key = NAMES[char] ?? (char >= ' ' ? char : null)
    if (key) keys.push(key)
    left = left.slice(char.length)
  }
  return { keys, rest: '' }
}

/** Returns the key of a sequence that was not completed: Escape. */
export function flushKeys(rest: string): Key[] {
  return rest === '' ? [] : ['escape']
}
