const NAME_MAX = 100

/** Returns the known name that a mistyped one probably means, or null. */
export function closest(name: string, known: readonly string[]): string | null {
  // The time grows with its length.
  if (name.length > NAME_MAX) return null
  let best: string | null = null
  let bestDistance = 3
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, change))
    }
    row = next
  }
  return row[b.length]!
}
