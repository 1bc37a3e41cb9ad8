export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}

/** One line per figure: easy to read, easy to grep. */
export function print(figure: Readonly<Record<string, string | number>>): void {
  console.log(
    Object.entries(figure)
      .map(([name, value]) => `${name} ${String(value)}`)
      .join('  '),
  )
}

/** `percentile(times, 0.95)`: 95 of 100 are at most so. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0
}
