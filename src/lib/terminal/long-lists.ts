import type { TextWriter } from './text-writer.ts'

/** Rows of a table, and sentences of a list, that are printed at most. */
export const ROWS_MAX = 50
export const LINES_MAX = 20

/** Prints how many of a list were left out, if any, and where they are. */
export function printOmitted(writer: TextWriter, count: number, where: string): void {
  if (count > 0) writer.paragraph({ text: `… and ${count} more; ${where}.`, style: 'dim' })
}

/** Prints each of the first, then how many there are beside them. */
export function printFirst<T>(
  writer: TextWriter,
  all: readonly T[],
  print: (one: T) => void,
  where: string,
  max = LINES_MAX,
): void {
  for (const one of all.slice(0, max)) print(one)
  printOmitted(writer, all.length - max, where)
}
