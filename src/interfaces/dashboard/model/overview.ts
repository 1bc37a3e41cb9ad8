import type { Health, ListedRun, Overview } from '../shapes.ts'

const STUCK: readonly (Health | null)[] = ['orphaned', 'stalled', 'dead']
const WORST_FIRST: readonly (Health | null)[] = [
  'orphaned',
  'dead',
  'stalled',
  'unknown',
  'interrupted',
  'paused',
  'waiting',
  'healthy',
  null,
]

/** The one line, in two sizes: `Something is stuck` and what that is. The server says it; here it is only cut. */
export function splitSummary({ summary }: Pick<Overview, 'summary'>): {
  line: string
  detail: string
} {
  const [line, ...rest] = summary.replace(/\.$/, '').split(': ')
  const detail = rest.join(': ')
  return { line: `${line}.`, detail: detail === '' ? '' : `${detail}.` }
}

export function isStuck(run: Pick<ListedRun, 'health'>): boolean {
  return STUCK.includes(run.health)
}

/** What is stuck comes first; within the same health the newest does, so that rows keep their places. */
export function worstFirst<R extends Pick<ListedRun, 'health' | 'createdAt'>>(
  runs: readonly R[],
): R[] {
  return runs.toSorted(
    (a, b) =>
      WORST_FIRST.indexOf(a.health) - WORST_FIRST.indexOf(b.health) ||
      b.createdAt.localeCompare(a.createdAt),
  )
}
