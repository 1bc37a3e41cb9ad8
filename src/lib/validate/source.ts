import { UsageError } from '../../core/model/errors.ts'

const RULE = 'a name of 1 to 200 characters without control characters or lone surrogates'

/** Names are shown in terminals and logs, and typed by hand. Returns what is wrong with a name as the end of a sentence, or null. */
export function sourceMistake(source: unknown): string | null {
  const isName =
    typeof source === 'string' &&
    source.length >= 1 &&
    source.length <= 200 &&
    !/[\p{Cc}\p{Cf}\p{Cs}]/u.test(source)
  return isName ? null : `must be ${RULE}`
}

/** Refuses what is no name of a source. */
export function checkSource(source: string): void {
  if (sourceMistake(source)) throw new UsageError(`A source is ${RULE}.`)
}

/** Returns whether a text that may also be the name of a source means a file. */
export function isModulePath(text: string): boolean {
  return /^(~|\.{0,2})[/\\]/.test(text) || /\.[cm]?[jt]s$/.test(text)
}
