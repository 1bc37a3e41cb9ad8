import type { LogHost } from '../../../contracts/feature.ts'
import type { Run } from '../../../core/model/run.ts'
import { FEATURES } from '../../../features/index.ts'
import type { LogPage } from '../../../presenters/schema/overview.ts'

/** Returns a part of a run's log, after a position or its newest lines. `because` explains an empty log. */
export async function readRunLog(
  host: LogHost,
  run: Run,
  after: string | null,
  limit: number,
): Promise<LogPage> {
  const readers = await Promise.all(FEATURES.flatMap(({ runLog }) => (runLog ? [runLog()] : [])))
  let page: Omit<LogPage, 'because'> | null = null
  for (const reader of readers) page ??= await reader.read(host, run, after, limit)
  let because: string | null = null
  if (after === null && !page?.lines.length)
    for (const reader of readers) because ??= await reader.explainMissing(host, run)
  return { lines: [], next: null, anew: after === null, ...page, because }
}
