import process from 'node:process'
import { truncate } from '../../lib/terminal/width.ts'
import { safeText } from '../../lib/text/safe-text.ts'

/** Reports progress on stderr: a line per event, and on a terminal a status line that is redrawn in place. */
export type Progress = {
  log(sentence: string): void
  /** Replaces the status line. Shown only on a terminal. */
  showStatus(text: string): void
  close(): void
}

const REDRAW_MS = 100

/** `1:07` since the start. */
export function formatElapsed(startedAt: number): string {
  const seconds = Math.floor((performance.now() - startedAt) / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** 4210 as `4,210`. */
export function formatNumber(n: number): string {
  return n.toLocaleString('en-US')
}

/** Whether lines of this stream can be redrawn in place. */
export function canRedraw({ isTTY }: { isTTY: boolean }): boolean {
  return isTTY && process.env['TERM'] !== 'dumb' && !process.env['NO_COLOR']
}

export function makeProgress(note: (line: string) => void): Progress {
  const { stderr } = process
  const isLive = canRedraw(stderr)
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
