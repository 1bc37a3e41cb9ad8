import { tooManyRequests } from './http-error.ts'
import type { Call, Ground } from './route.ts'

/** Of the looks that read much, so many are under way for one caller; some more wait, and what comes then is refused. */
const AT_ONCE = 2
const WAITING_MAX = 8

type Line = { underWay: number; readonly waiting: (() => void)[] }

/** Each server has its own. */
const LINES = new WeakMap<Ground, Map<string, Line>>()

/** For calls that read all there is of something: whoever asks for many at once waits for themselves, and nobody else does. */
export async function inLine<T>(
  { caller, ground, signal }: Pick<Call<unknown, unknown, unknown>, 'caller' | 'ground' | 'signal'>,
  look: () => Promise<T>,
): Promise<T> {
  const lines = LINES.get(ground) ?? new Map<string, Line>()
  LINES.set(ground, lines)
  const key = JSON.stringify([caller.name, caller.by === 'local' ? null : caller.address])
  const line = lines.get(key) ?? { underWay: 0, waiting: [] }
  lines.set(key, line)
  if (line.underWay < AT_ONCE) line.underWay++
  else if (line.waiting.length >= WAITING_MAX) throw tooManyRequests(1, 'of these at once')
  else await new Promise<void>((resolve) => line.waiting.push(resolve))
  try {
    signal.throwIfAborted()
    return await look()
  } finally {
    // Whoever is next takes the place over.
    const next = line.waiting.shift()
    if (next) next()
    else if (--line.underWay === 0) lines.delete(key)
  }
}
