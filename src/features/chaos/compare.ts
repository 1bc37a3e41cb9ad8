import { isDeepStrictEqual } from 'node:util'
import { isLive, type Run } from '../../core/model/run.ts'
import type { Target } from '../../core/model/target.ts'

/** What a database and the command's own files hold in the end. */
export type Outcome = {
  readonly runs: readonly RunFacts[]
  /** Of the newest run of each source. */
  readonly targets: readonly TargetFacts[]
  readonly items: readonly ItemFacts[]
  /** The keys in the command's own output, in order, with repeats; null when none was asked for. */
  readonly output: readonly string[] | null
}

/** Newest first. */
export type RunFacts = Pick<Run, 'id' | 'source' | 'status' | 'retryOf'> & {
  readonly pages: number
  readonly refused: number
}
export type TargetFacts = Pick<Target, 'key' | 'status' | 'page'> & { readonly source: string }
export type ItemFacts = { readonly source: string; readonly key: string; readonly data: unknown }

/** The differences from the reference: one sentence each. All lists are empty when all is well. */
export type Differences = ReturnType<typeof compare>

/** Compares a result with the reference. Reads only its arguments. */
export function compare(
  reference: Outcome,
  result: Outcome,
  { ignoreData }: { readonly ignoreData: boolean },
) {
  return {
    ...compareItems(reference.items, result.items, ignoreData),
    ...compareTargets(reference.targets, result.targets),
    runsOpen: openRuns(reference.runs, result.runs),
    ...compareOutput(reference.output ?? [], result.output ?? []),
  }
}

function compareItems(
  reference: readonly ItemFacts[],
  result: readonly ItemFacts[],
  ignoreData: boolean,
) {
  const expected = new Map(reference.map((item) => [nameOf(item), item]))
  const itemsUnexpected: string[] = []
  const itemsDifferent: string[] = []
  for (const item of result) {
    const name = nameOf(item)
    const original = expected.get(name)
    if (!original) itemsUnexpected.push(name)
    else if (!ignoreData && !isDeepStrictEqual(item.data, original.data)) itemsDifferent.push(name)
    expected.delete(name)
  }
  return { itemsLost: [...expected.keys()], itemsUnexpected, itemsDifferent }
}

function compareTargets(reference: readonly TargetFacts[], result: readonly TargetFacts[]) {
  const expected = new Map(reference.map((target) => [nameOf(target), target]))
  const targetsUnexpected: string[] = []
  /** Targets that ended at an earlier or a later page than in the reference. */
  const [targetsShort, targetsBeyond]: [string[], string[]] = [[], []]
  /** Targets with another status than in the reference. */
  const targetsOpen: string[] = []
  /** Number of missing and of surplus pages. */
  let [pagesLost, pagesBeyond] = [0, 0]
  for (const target of result) {
    const name = nameOf(target)
    const original = expected.get(name)
    expected.delete(name)
    if (!original) {
      targetsUnexpected.push(name)
      continue
    }
    const missing = original.page - target.page
    const text = `${name}: page ${target.page} instead of ${original.page}`
    if (missing > 0) targetsShort.push(text)
    if (missing < 0) targetsBeyond.push(text)
    pagesLost += Math.max(0, missing)
    pagesBeyond += Math.max(0, -missing)
    const [status, expectedStatus] = [target, original].map((one) => one.status.replace('_', ' '))
    if (status !== expectedStatus)
      targetsOpen.push(`${name}: ${status} instead of ${expectedStatus}`)
  }
  for (const { page } of expected.values()) pagesLost += page
  return {
    targetsLost: [...expected.keys()],
    targetsUnexpected,
    targetsShort,
    targetsBeyond,
    targetsOpen,
    pagesLost,
    pagesBeyond,
  }
}

/** Returns runs that did not succeed, except those that were retried or end like this in the reference too. */
function openRuns(reference: readonly RunFacts[], result: readonly RunFacts[]): string[] {
  const retried = new Set(result.map(({ retryOf }) => retryOf))
  const expected = new Map(reference.toReversed().map(({ source, status }) => [source, status]))
  return result
    .filter(({ id, source, status }) => !retried.has(id) && status !== expected.get(source))
    .filter(({ status }) => status !== 'succeeded')
    .map(({ source, status }) => `${source}: ${isLive(status) ? `left ${status}` : status}`)
}

/** Compares how often each key is there: the reference may have repeats too. */
function compareOutput(reference: readonly string[], result: readonly string[]) {
  const expected = Map.groupBy(reference, (key) => key)
  const found = Map.groupBy(result, (key) => key)
  const outputLost = [...expected].flatMap(([key, all]) => all.slice(found.get(key)?.length ?? 0))
  const outputDoubled: string[] = []
  const outputUnexpected: string[] = []
  for (const [key, { length: times }] of found) {
    const expectedTimes = expected.get(key)?.length ?? 0
    if (expectedTimes === 0) outputUnexpected.push(key)
    else if (times > expectedTimes)
      outputDoubled.push(`${key}: ${times} times instead of ${expectedTimes}`)
  }
  return { outputLost, outputDoubled, outputUnexpected }
}

/** The one target of a run in one's own code has the source's name. */
function nameOf({ source, key }: { source: string; key: string }): string {
  return key === source ? source : `${source} ${key}`
}

/**
 * Whether all work is done: every source of the reference has had a run, and none is live. A command that is killed
 * after that is not restarted: it would begin a new run.
 */
export function isAllDone(
  reference: readonly RunFacts[],
  runs: readonly Pick<RunFacts, 'source' | 'status'>[],
): boolean {
  const started = new Set(runs.map(({ source }) => source))
  return (
    runs.every(({ status }) => !isLive(status)) &&
    reference.every(({ source }) => started.has(source))
  )
}
