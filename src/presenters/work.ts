import { runName } from '../core/model/traits.ts'
import type { Counts, Run } from '../core/model/run.ts'
import { humanizeDuration } from '../core/model/time.ts'
import type { Store } from '../core/store/store.ts'
import { formatRunStatus, plural } from './format.ts'
import type { WorkResult } from './results.ts'

/** More runs than a source can have begun between two reads of its newest ones. */
const RUNS_BEFORE = 50
const PAGE_SIZE = 200

type Reads = Pick<Store, 'runs'>
/** What was worked on: the result, and the runs for its text. */
export type Work = { readonly result: WorkResult; readonly runs: readonly Run[] }

/**
 * Measures what is committed to the runs of a source from `start` to `finish`, by their counters in the database: no
 * process that was killed meanwhile is missing.
 */
export class WorkMeter {
  readonly #source: string
  readonly #startedAt = performance.now()
  #before: Map<string, Run> | null = null

  constructor(source: string) {
    this.#source = source
  }

  /** Reads the counters as they are before the work. */
  async start(store: Reads): Promise<void> {
    const { items } = await store.runs({ source: this.#source, limit: RUNS_BEFORE })
    this.#before = new Map(items.map((run) => [run.id, run]))
  }

  async finish(store: Reads, stopped: string | null): Promise<Work> {
    const before = this.#before
    // Without a start, the work ended before the database could be read.
    const runs = before === null ? [] : await this.#workedOn(store, before)
    const total = (read: (counts: Counts) => number): number =>
      runs.reduce((sum, { id, counts }) => {
        const was = before?.get(id)
        return sum + read(counts) - (was ? read(was.counts) : 0)
      }, 0)
    const result = {
      stopped,
      runs: runs.map(({ id }) => id),
      pages: total(({ pages }) => pages),
      items: {
        new: total(({ itemsNew }) => itemsNew),
        updated: total(({ itemsUpdated }) => itemsUpdated),
        unchanged: total(({ itemsUnchanged }) => itemsUnchanged),
      },
      errors: total(({ errors }) => errors),
      durationMs: Math.round(performance.now() - this.#startedAt),
    }
    return { result, runs }
  }

  /** Returns the runs that changed since the start, the oldest first. */
  async #workedOn(store: Reads, before: ReadonlyMap<string, Run>): Promise<Run[]> {
    const oldest = [...before.keys()].at(-1) ?? ''
    const runs: Run[] = []
    for (let after: string | undefined; ;) {
      const { items, next } = await store.runs({ source: this.#source, after, limit: PAGE_SIZE })
      runs.push(...items.filter(({ id }) => id >= oldest))
      if (next === null || next <= oldest) break
      after = next
    }
    return runs.filter((run) => isWorkedOn(run, before.get(run.id))).reverse()
  }
}

function isWorkedOn(run: Run, was: Run | undefined): boolean {
  if (!was) return run.status !== 'queued'
  return run.status !== was.status || run.lastActivityAt !== was.lastActivityAt
}

/** `Run 4f2a91bc of shop, succeeded: 281 pages by all its workers; items: 90 new, 0 updated, 12 unchanged; 0 errors; took 17 s.` */
export function describeWork(source: string, { result, runs }: Work): string {
  const { pages, items, errors, durationMs, stopped } = result
  const [run] = runs
  const what =
    runs.length > 1
      ? `${runs.length} runs of ${source}`
      : run
        ? `Run ${runName(run)} of ${source}, ${formatRunStatus(run.status).text}`
        : `No run of ${source}`
  const facts = [
    // Counted in the database: also what other processes saved meanwhile, and those that were killed.
    `${plural(pages, 'page')}${run ? ' by all its workers' : ''}`,
    `items: ${items.new} new, ${items.updated} updated, ${items.unchanged} unchanged`,
    plural(errors, 'error'),
  ]
  const took = humanizeDuration(durationMs)
  return `${stopped === null ? '' : 'Stopped. '}${what}: ${facts.join('; ')}; took ${took}.`
}
