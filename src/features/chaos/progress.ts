import process from 'node:process'
import { formatElapsed } from './demo/reporter.ts'
import { truncate } from '../../lib/terminal/width.ts'
import { safeText } from '../../core/events/safe-text.ts'

/** Tells how it goes, on stderr: a line for each thing that happened, and on a terminal one that is redrawn in place. */
export type Progress = {
  log(sentence: string): void
  /** How things stand. Only a terminal shows it. */
  showStatus(text: string): void
  close(): void
}

const REDRAW_MS = 100

export function makeProgress(note: (line: string) => void): Progress {
  const { stderr } = process
  const isLive = stderr.isTTY && process.env['TERM'] !== 'dumb' && !process.env['NO_COLOR']
  const startedAt = performance.now()
  const elapsed = (): string => formatElapsed(startedAt).padStart(5)
  let shown = ''
  let shownAt = -Infinity
  const erase = (): void => {
    if (isLive && shown !== '') stderr.write('\r\u001B[2K')
  }
  const draw = (): void => {
    if (isLive && shown !== '') stderr.write(truncate(shown, (stderr.columns || 80) - 1))
  }
  return {
    log(sentence) {
      erase()
      note(`${elapsed()}  ${sentence}`)
      draw()
    },
    showStatus(text) {
      if (!isLive || performance.now() - shownAt < REDRAW_MS) return
      shownAt = performance.now()
      erase()
      shown = safeText(`${elapsed()}  ${text}`)
      draw()
    },
    close() {
      erase()
      shown = ''
    },
  }
}
