import { hash } from 'node:crypto'

/** A number from 0 up to 1 that looks random and is always the same for the same words. */
export function seededFraction(...parts: readonly (string | number)[]): number {
  return Number.parseInt(hash('sha256', parts.join('/'), 'hex').slice(0, 12), 16) / 2 ** 48
}

/** Choices that a seed decides, one after the other. */
export type Random = {
  next(): number
  pick<T>(of: readonly T[]): T
}

export function makeRandom(seed: number): Random {
  let drawn = 0
  const next = (): number => seededFraction(seed, 'dice', drawn++)
  return { next, pick: (of) => of[Math.floor(next() * of.length)]! }
}
