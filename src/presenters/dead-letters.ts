import { setImmediate } from 'node:timers/promises'
import { fingerprintOf } from './fingerprint.ts'
import { LIMITS } from '../core/model/limits.ts'
import type { RunId } from '../core/model/id.ts'
import { DEAD_LETTER_STATUSES, type Target, type DeadLetterStatus } from '../core/model/target.ts'
import { iso } from '../core/model/time.ts'
import type { DeadLetter, Listing, Store } from '../core/store/store.ts'

/** Which of them. */
export type DeadLetterSelection = {
  readonly fingerprint?: string | undefined
  readonly source?: string | undefined
  readonly statuses?: readonly DeadLetterStatus[] | undefined
}

type FingerprintedLetter = DeadLetter & { readonly fingerprint: string }

const PAGE_SIZE = 2_000

/** All that fit, page by page. SQLite answers at once: other work has its turn between two pages. */
export async function* readDeadLetters(
  store: Store,
  { fingerprint, source, statuses }: DeadLetterSelection,
  from?: string,
): AsyncGenerator<FingerprintedLetter[]> {
  for (let after: string | null | undefined = from; after !== null;) {
    const page: Listing<DeadLetter> = await store.deadLetters({
      source,
      statuses,
      after,
      limit: PAGE_SIZE,
    })
    const kinds = new Map<string, string>()
    const found = page.items.map((letter) => {
      const kind = kinds.get(letter.error) ?? fingerprintOf(letter.error)
      kinds.set(letter.error, kind)
      return { ...letter, fingerprint: kind }
    })
    yield fingerprint === undefined ? found : found.filter((one) => one.fingerprint === fingerprint)
    await setImmediate()
    after = page.next
  }
}

const GROUPS_MAX = 500
const SAMPLE_MAX = 5
/** So many are sorted into groups for one look. */
export const SCAN_MAX = 100_000

export type DeadLetterGroup = {
  fingerprint: string
  error: string
  count: number
  statuses: Partial<Record<DeadLetterStatus, number>>
  sources: string[]
  firstAt: string
  lastAt: string
  sample: { id: string; key: string; run: RunId; status: DeadLetterStatus }[]
}

export type DeadLetterGroups = {
  /** By the books, where no source is named. */
  total: number
  /** There are more than were looked at: each count is the least it can be. */
  isPartial: boolean
  groups: DeadLetterGroup[]
}

/** Failed, held and parked targets, those with the same kind of error together, the largest group first. */
export async function groupDeadLetters(
  store: Store,
  { source }: { readonly source?: string | undefined },
  scanMax = SCAN_MAX,
): Promise<DeadLetterGroups> {
  const byFingerprint = new Map<string, GroupBuilder>()
  let [seen, isPartial] = [0, false]
  for await (const page of readDeadLetters(store, { source })) {
    isPartial = seen >= scanMax && page.length > 0
    if (isPartial) break
    seen += page.length
    for (const letter of page) {
      let group = byFingerprint.get(letter.fingerprint)
      if (!group) byFingerprint.set(letter.fingerprint, (group = new GroupBuilder()))
      group.add(letter)
    }
  }
  const groups = [...byFingerprint]
    .map(([fingerprint, group]) => group.view(fingerprint))
    .sort((a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1))
  return {
    total: source === undefined ? await countDeadLetters(store) : seen,
    isPartial: isPartial || groups.length > GROUPS_MAX,
    groups: groups.slice(0, GROUPS_MAX),
  }
}

async function countDeadLetters(store: Store): Promise<number> {
  const { targets } = await store.targetTotals()
  return DEAD_LETTER_STATUSES.reduce((total, status) => total + targets[status], 0)
}

/** One kind of error, as its letters come in. */
class GroupBuilder {
  #count = 0
  #error = ''
  #firstAt = Infinity
  #lastAt = -Infinity
  readonly #statuses: Partial<Record<DeadLetterStatus, number>> = {}
  readonly #sources = new Set<string>()
  /** One of each run and status: a person has something else to do about each. */
  readonly #sample = new Map<string, DeadLetterGroup['sample'][number]>()

  add({ id, key, run, source, status, error, at }: DeadLetter): void {
    this.#count++
    if (at > this.#lastAt) this.#error = error
    this.#firstAt = Math.min(this.#firstAt, at)
    this.#lastAt = Math.max(this.#lastAt, at)
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
    this.#sources.add(source)
    if (this.#sample.size < SAMPLE_MAX && !this.#sample.has(`${run} ${status}`))
      this.#sample.set(`${run} ${status}`, { id, key, run, status })
  }

  view(fingerprint: string): DeadLetterGroup {
    return {
      fingerprint,
      error: this.#error || 'No error is known.',
      count: this.#count,
      statuses: this.#statuses,
      sources: [...this.#sources].sort(),
      firstAt: iso(this.#firstAt),
      lastAt: iso(this.#lastAt),
      sample: [...this.#sample.values()],
    }
  }
}

/** The targets of a group one by one, by id. */
export async function listDeadLetters(
  store: Store,
  selection: DeadLetterSelection,
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
): Promise<Listing<Target>> {
  const ids: string[] = []
  for await (const page of readDeadLetters(store, selection, after)) {
    ids.push(...page.slice(0, limit + 1 - ids.length).map(({ id }) => id))
    if (ids.length > limit) break
  }
  const shown = ids.slice(0, limit)
  const items: Target[] = []
  for (const id of shown) {
    const target = await store.target(id)
    if (target) items.push(truncateTarget(target))
  }
  return {
    items,
    next: ids.length > limit ? shown.at(-1)! : null,
  }
}

/** As the lists of the store have them: one at a time is read whole. */
function truncateTarget(target: Target): Target {
  const N = LIMITS.listed
  const cursor = JSON.stringify(target.cursor ?? null)
  const { lastError, next } = target
  if (Math.max(cursor.length, lastError?.length ?? 0, next?.length ?? 0) <= N) return target
  return {
    ...target,
    cursor: cursor.length > N ? cursor.slice(0, N).toWellFormed() : target.cursor,
    lastError: lastError && lastError.slice(0, N).toWellFormed(),
    next: next && next.slice(0, N).toWellFormed(),
    cut: true,
  }
}
