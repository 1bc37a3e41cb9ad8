import { setImmediate } from 'node:timers/promises'
import { fingerprintOf } from './fingerprint.ts'
import { LIMITS } from '../core/model/limits.ts'
import { shortId } from '../core/model/id.ts'
import { DEAD_LETTER_STATUSES, type Target, type DeadLetterStatus } from '../core/model/target.ts'
import { iso, type Millis } from '../core/model/time.ts'
import type { DeadLetter, Listing, Store } from '../core/store/store.ts'
import { ACKNOWLEDGE_STORE } from '../features/acknowledge/store/store.ts'
import { left, flex, type Section, type Sentence, makeTable } from '../lib/text/sentence.ts'
import { formatAgo, formatTargetStatus, plural, formatRunId } from './format.ts'
import type { DeadLetterGroup, DeadLetters } from './responses.ts'

export type DeadLetterSelection = {
  readonly fingerprint?: string | undefined
  readonly source?: string | undefined
  readonly statuses?: readonly DeadLetterStatus[] | undefined
  /** Selects those that an operator acknowledged; default: those that need attention. */
  readonly acknowledged?: boolean | undefined
}

type FingerprintedLetter = DeadLetter & { readonly fingerprint: string }

const PAGE_SIZE = 2_000

/** Yields all that match, page by page. SQLite is synchronous: other work runs between two pages. */
export async function* readDeadLetters(
  store: Store,
  { fingerprint, source, statuses, acknowledged = false }: DeadLetterSelection,
  from?: string,
): AsyncGenerator<FingerprintedLetter[]> {
  for (let after: string | null | undefined = from; after !== null;) {
    const page: Listing<DeadLetter> = await store.deadLetters({
      source,
      statuses,
      acknowledged,
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
/** At most this many are grouped for one answer. */
export const SCAN_MAX = 100_000

/** Dead letters by kind of error, without what can be done to them. */
export type DeadLetterGroups = Pick<DeadLetters, 'total' | 'isPartial'> & {
  readonly groups: readonly DeadLetterGroup[]
}

/** Groups failed, stuck and parked targets by kind of error, the largest group first. */
export async function groupDeadLetters(
  store: Store,
  { source, acknowledged = false }: Pick<DeadLetterSelection, 'source' | 'acknowledged'>,
  scanMax = SCAN_MAX,
): Promise<DeadLetterGroups> {
  const byFingerprint = new Map<string, GroupBuilder>()
  let [grouped, isPartial] = [0, false]
  for await (const page of readDeadLetters(store, { source, acknowledged })) {
    isPartial = grouped >= scanMax && page.length > 0
    if (isPartial) break
    grouped += page.length
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
    total: source === undefined ? await totalDeadLetters(store, acknowledged) : grouped,
    isPartial: isPartial || groups.length > GROUPS_MAX,
    groups: groups.slice(0, GROUPS_MAX),
  }
}

async function totalDeadLetters(store: Store, acknowledged: boolean): Promise<number> {
  const extension = await store.extend(ACKNOWLEDGE_STORE)
  const counts = await extension.acknowledgedCounts(null)
  const marked = counts.reduce((sum, { count }) => sum + count, 0)
  if (acknowledged) return marked
  const { targets } = await store.targetTotals()
  return DEAD_LETTER_STATUSES.reduce((sum, status) => sum + targets[status], 0) - marked
}

/** Collects the dead letters of one kind of error. */
class GroupBuilder {
  #count = 0
  #error = ''
  #firstAt = Infinity
  #lastAt = -Infinity
  readonly #statuses: Partial<Record<DeadLetterStatus, number>> = {}
  readonly #sources = new Set<string>()
  /** One of each run and status: each needs another command. */
  readonly #sample = new Map<string, DeadLetterGroup['sample'][number]>()

  add({ id, key, run, origin, source, status, error, at }: DeadLetter): void {
    this.#count++
    if (at > this.#lastAt) this.#error = error
    this.#firstAt = Math.min(this.#firstAt, at)
    this.#lastAt = Math.max(this.#lastAt, at)
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1
    this.#sources.add(source)
    if (this.#sample.size < SAMPLE_MAX && !this.#sample.has(`${run} ${status}`))
      this.#sample.set(`${run} ${status}`, { id, key, run, origin: origin ?? null, status })
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

/** Presents one kind of error: an example of each run and status, and the commands that put its targets back in the queue. */
export function deadLetterSections(
  { error, count, sources, sample, firstAt, lastAt }: DeadLetterGroup,
  isPartial: boolean,
  now: Millis,
): Section[] {
  const [first, last] = [firstAt, lastAt].map((at) => formatAgo(Date.parse(at), now))
  const targets = `${isPartial ? 'At least ' : ''}${plural(count, 'target')} of ${sources.join(', ')}`
  const commands = [...Map.groupBy(sample, ({ run }) => run)].flatMap(([run, letters]) => {
    const isFailed = letters.some(({ status }) => status === 'failed')
    const isOther = letters.some(({ status }) => status !== 'failed')
    return [
      ...(isFailed ? [`- \`unstuck reset-failed ${shortId(run)}\``] : []),
      ...(isOther ? [`- \`unstuck unpark --run ${shortId(run)}\``] : []),
    ]
  })
  return [
    {
      heading: null,
      sentences: [[{ text: error, style: 'bad' }], [`${targets}; first ${first}, last ${last}.`]],
    },
    {
      heading: 'For example',
      table: makeTable(sample, [
        left('TARGET', ({ id, origin }) => formatRunId(id, origin)),
        left('RUN', ({ run }) => shortId(run)),
        left('STATUS', ({ status }) => formatTargetStatus(status)),
        flex('KEY', ({ key }) => key),
      ]),
      sentences: [],
    },
    {
      heading: 'What to do',
      sentences: [...commands, 'They continue after their last saved pages.'].map(
        (text): Sentence => [text],
      ),
    },
  ]
}

/** Returns the targets of a group, by id. */
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

/** Cuts long values as the lists of the store do. */
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
