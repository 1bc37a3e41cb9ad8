import { hash } from 'node:crypto'

/** Returns a number from 0 up to 1 that looks random and is always the same for the same parts. */
export function seededFraction(...parts: readonly (string | number)[]): number {
  return Number.parseInt(hash('sha256', parts.join('/'), 'hex').slice(0, 12), 16) / 2 ** 48
}

/** A sequence of choices that a seed decides: the same seed, the same choices. */
export type Random = {
  readonly seed: number
  next(): number
  /** Returns a whole number, both ends included. */
  between(min: number, max: number): number
  pick<T>(of: readonly T[]): T
}

export function makeRandom(seed: number): Random {
  let drawn = 0
  const next = (): number => seededFraction(seed, 'dice', drawn++)
  return {
    seed,
    next,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    pick: (of) => of[Math.floor(next() * of.length)]!,
  }
}
