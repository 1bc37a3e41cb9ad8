import type { Paper } from './text-writer.ts'

/** Rows of a table, and sentences of a list, that are printed at most. */
export const ROWS_MAX = 50
export const LINES_MAX = 20

/** Prints how many of a list were left out, if any, and where they are. */
export function printLeftOut(paper: Paper, count: number, where: string): void {
  if (count > 0) paper.say({ text: `… and ${count} more; ${where}.`, ink: 'dim' })
}

/** Prints each of the first, then how many there are beside them. */
export function printFirst<T>(
  paper: Paper,
  all: readonly T[],
  print: (one: T) => void,
  where: string,
  max = LINES_MAX,
): void {
  for (const one of all.slice(0, max)) print(one)
  printLeftOut(paper, all.length - max, where)
}
