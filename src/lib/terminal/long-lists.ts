import { LINES_MAX, omitted } from '../text/sentence.ts'
import type { TextWriter } from './text-writer.ts'

/** Prints how many of a list were left out, if any, and where they are. */
export function printOmitted(writer: TextWriter, count: number, where: string): void {
  if (count > 0) writer.paragraph(...omitted(count, where))
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
