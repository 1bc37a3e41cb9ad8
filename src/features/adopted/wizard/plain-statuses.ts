import { plural } from '../../../presenters/format.ts'
import type { Mapping, StatusValue } from '../mapping.ts'
import { normalizeName, type FoundColumn, type ValueCount } from './columns.ts'
import type { StatusGuess, StatusKey } from './statuses.ts'

/** Statuses whose values say nothing themselves: whole numbers, as of an enum in the program, and flags. */

const ACTIVE_FLAG =
  /^(is_)?(currently_)?(running|in_progress|processing|crawling|scraping|working|busy)$/
const ENDED_FLAG = /^(is_)?(done|finished|completed?|processed|ended|closed)$/

export function isFlagName(name: string): boolean {
  return ACTIVE_FLAG.test(name) || ENDED_FLAG.test(name)
}

/** Named like a flag, with nothing but two values. */
export function isFlag({ name, type, values }: FoundColumn): boolean {
  const isTwofold = (values ?? []).every(({ value }) => /^(0|1|true|false)$/.test(value))
  return isFlagName(normalizeName(name)) && (type === 'boolean' || isTwofold)
}

/**
 * Returns what each value means: of a flag by its name, of a number by the start, the end and the error of its rows. Without a
 * column for the error a flag does not tell failed rows.
 */
export function guessFromRows(
  column: FoundColumn,
  kind: Mapping['kind'],
  hasError = true,
): StatusGuess[] {
  const { type, values } = column
  const found = values ?? []
  if (isFlag(column))
    return guessFlag(column).filter(({ meaning }) => hasError || meaning !== 'failed')
  if (type === 'boolean') return []
  const guesses: StatusGuess[] = []
  for (const one of found) {
    const meaning = meaningOf(one, kind)
    // Of several values that look alike the most frequent counts: the others are left to the user.
    if (meaning === null || guesses.some((guess) => guess.meaning === meaning.key)) continue
    const because = `in ${plural(one.count, 'row')}, ${meaning.because}`
    const value = Number(one.value)
    guesses.push({ meaning: meaning.key, value, count: one.count, isGuess: true, because })
  }
  return guesses
}

function guessFlag({ name, type, values }: FoundColumn): StatusGuess[] {
  const isActiveFlag = ACTIVE_FLAG.test(normalizeName(name))
  const countOf = (isSet: boolean): number | null =>
    values?.find(({ value }) => /^(1|true)$/.test(value) === isSet)?.count ?? null
  const valueOf = (isSet: boolean): StatusValue => (type === 'boolean' ? isSet : Number(isSet))
  const guess = (meaning: StatusKey, isSet: boolean): StatusGuess => {
    const count = countOf(isSet)
    const because = count === null ? 'in no row now' : `in ${plural(count, 'row')}`
    return { meaning, value: valueOf(isSet), count, isGuess: false, because }
  }
  const ended = guess('succeeded', !isActiveFlag)
  return [
    guess('active', isActiveFlag),
    ended,
    { ...ended, meaning: 'failed', because: `${ended.because}; with an error` },
  ]
}

const MOSTLY = 0.8

function meaningOf(
  { value, count, rows }: ValueCount,
  kind: Mapping['kind'],
): { key: StatusKey; because: string } | null {
  if (!/^-?\d{1,9}$/.test(value) || rows === undefined) return null
  const are = (some: number): boolean => some >= MOSTLY * count
  const few = (some: number): boolean => some <= (1 - MOSTLY) * count
  if (are(rows.failed) && !few(rows.ended)) return { key: 'failed', because: 'with an error' }
  if (are(rows.ended) && few(rows.failed))
    return { key: 'succeeded', because: 'with an end and no error' }
  if (are(rows.started) && few(rows.ended))
    return { key: 'active', because: 'with a start and no end' }
  return few(rows.started) && few(rows.ended)
    ? { key: kind === 'runs' ? 'queued' : 'planned', because: 'without a start' }
    : null
}
