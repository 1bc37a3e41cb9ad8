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
