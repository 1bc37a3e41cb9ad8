import { hash } from 'node:crypto'

/** A number from 0 up to 1 that looks random and is always the same for the same words. */
export function fraction(...words: readonly (string | number)[]): number {
  return Number.parseInt(hash('sha256', words.join('/'), 'hex').slice(0, 12), 16) / 2 ** 48
}

/** Choices that a seed decides, one after the other. */
export type Dice = {
  next(): number
  pick<T>(of: readonly T[]): T
}

export function makeDice(seed: number): Dice {
  let thrown = 0
  const next = (): number => fraction(seed, 'dice', thrown++)
  return { next, pick: (of) => of[Math.floor(next() * of.length)]! }
}
