import { QUICK_EXIT_MS, restartDelayMs } from '../../lib/process/restart-delay.ts'
import { docPath } from '../../lib/files/doc-path.ts'
import type { CopyExit } from './worker-copy.ts'

/** What is remembered of the copies before, in one slot. */
export type CopyHistory = {
  /** Exits in a row, each soon after the start and without progress. */
  readonly quickExits: number
  /** Exits in a row, by themselves and without a call to the API. */
  readonly silentExits: number
}

export const NO_EXITS: CopyHistory = { quickExits: 0, silentExits: 0 }

export type CopyRestart =
  | { readonly action: 'start'; readonly inMs: number; readonly history: CopyHistory }
  | { readonly action: 'give-up'; readonly because: string }

const SILENT_EXITS_MAX = 3

/** Decides whether and when the next copy is started while work is left. */
export function decideCopyRestart(
  exit: Pick<CopyExit, 'hasCalled' | 'hasProgressed' | 'outcome' | 'signal' | 'uptimeMs'>,
  before: CopyHistory,
): CopyRestart {
  const { hasCalled, hasProgressed, outcome, signal, uptimeMs } = exit
  const isOwnEnd = outcome.run === 'succeed' || (outcome.run === 'crash' && signal === null)
  const silentExits = isOwnEnd && !hasCalled ? before.silentExits + 1 : 0
  if (silentExits >= SILENT_EXITS_MAX) {
    return {
      action: 'give-up',
      because:
        `The command ended ${silentExits} times without a call to its API (last: ${outcome.because}). ` +
        `With --targets it must claim targets: ${docPath('reference/worker-api.md')}.`,
    }
  }
  const isQuick = !hasProgressed && uptimeMs < QUICK_EXIT_MS
  const quickExits = isQuick ? before.quickExits + 1 : 0
  return { action: 'start', inMs: restartDelayMs(quickExits), history: { quickExits, silentExits } }
}
