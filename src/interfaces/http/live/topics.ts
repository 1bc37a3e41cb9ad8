import { contextFor } from '../../../app/open-context.ts'
import type { LogHost } from '../../../contracts/feature.ts'
import type { ServerContext } from '../../../contracts/route.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { NotFoundError, UsageError } from '../../../core/model/errors.ts'
import type { RunId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { assess } from '../../../core/recovery/assess.ts'
import type { AuditEntry } from '../../../core/store/store.ts'
import { FEATURES } from '../../../features/index.ts'
import { eventFrame } from '../../../lib/http/event-stream.ts'
import { AuditReader } from '../../../presenters/audit-reader.ts'
import { findRun } from '../../../presenters/find.ts'
import { loadOverview, presentOverview } from '../../../presenters/overview.ts'
import { toJson } from '../../../presenters/presented.ts'
import { loadRunReport, presentRun } from '../../../presenters/run.ts'
import type { LogPage } from '../../../presenters/responses.ts'
import { auditView } from '../../../presenters/view.ts'
import { workerViews } from '../../../presenters/workers.ts'

/** Something that is read once for all its clients. */
export interface Topic {
  /** Reads again. Returns what changed, or null. */
  poll(): Promise<Uint8Array | null>
  /** Returns the snapshot for a new client, as of the last read; null if there is none yet. */
  snapshot(lastEventId: string | undefined): Promise<Uint8Array | null>
}

/** Returns the topic of a name in the URL; null if there is none. */
export function makeTopic(name: string, server: ServerContext): Topic | null {
  const { store, settings } = server
  const context = contextFor(store, settings, 'live')
  const [kind, id] = name.split(':') as [string, string | undefined]
  if (id !== undefined && !ID.test(id)) return null
  switch (id === undefined ? kind : `${kind}:`) {
    case 'overview':
      return new StateTopic('overview', async () =>
        toJson(presentOverview(await loadOverview(context))),
      )
    case 'workers':
      return new StateTopic('workers', async () => ({
        items: workerViews(await assess(context)),
      }))
    case 'trail':
      return new HistoryTopic(server)
    case 'run:':
      return new StateTopic('run', async () =>
        toJson(presentRun(await loadRunReport(context, await findRun(store, id!)))),
      )
    case 'log:':
      return new LogTopic(server, id!)
    default:
      return null
  }
}

const ID = /^[0-9a-f-]{8,36}$/

/** A snapshot that is sent when it has changed. */
class StateTopic implements Topic {
  readonly #event: string
  readonly #load: () => Promise<object>
  #lastJson = ''
  #frame: Uint8Array | null = null

  constructor(event: string, load: () => Promise<object>) {
    this.#event = event
    this.#load = load
  }

  async poll(): Promise<Uint8Array | null> {
    const seen = await unlessNotFound(this.#load)
    if (!seen) return null
    // Time that passes is no change; sentences contain ages.
    const known = safeJson({ ...seen, now: undefined, sections: undefined })
    if (known === this.#lastJson) return null
    this.#lastJson = known
    return (this.#frame = eventFrame(this.#event, safeJson(seen)))
  }

  async snapshot(): Promise<Uint8Array | null> {
    return this.#frame
  }
}

/** The number of lines for a new client. */
const SNAPSHOT_LINES = 200

/** A run's log: its newest lines, then the following ones. */
class LogTopic implements Topic {
  readonly #server: ServerContext
  readonly #id: RunId
  #log: LogPage | null = null

  constructor(server: ServerContext, id: RunId) {
    this.#server = server
    this.#id = id
  }

  async poll(): Promise<Uint8Array | null> {
    const run = await unlessNotFound(() => findRun(this.#server.store, this.#id))
    if (!run) return null
    const before = this.#log
    const log = await readRunLog(this.#server, run, before?.next ?? null, SNAPSHOT_LINES)
    const isSame = before?.because === log.because && !log.anew
    const lines = log.anew ? log.lines : [...(before?.lines ?? []), ...log.lines]
    this.#log = { ...log, lines: lines.slice(-SNAPSHOT_LINES) }
    return isSame && log.lines.length === 0 ? null : eventFrame('log', safeJson(log))
  }

  async snapshot(): Promise<Uint8Array | null> {
    return this.#log && eventFrame('log', safeJson({ ...this.#log, anew: true }))
  }
}

/** The most entries that are sent again to a reconnecting client. */
const REPLAYED_MAX = 500

/** The audit trail as it grows. A reconnecting client gets the entries it missed. */
class HistoryTopic implements Topic {
  readonly #server: ServerContext
  #reader: AuditReader | null = null

  constructor(server: ServerContext) {
    this.#server = server
  }

  async poll(): Promise<Uint8Array | null> {
    this.#reader ??= await AuditReader.fromNow(this.#server.store)
    return framesOf(await this.#reader.next())
  }

  async snapshot(lastEventId: string | undefined): Promise<Uint8Array | null> {
    const last = Number(lastEventId ?? Number.NaN)
    const at = this.#reader?.at ?? 0
    if (!Number.isSafeInteger(last) || last >= at) return null
    const newest = await this.#server.store.audit({ newestFirst: true, limit: REPLAYED_MAX })
    return framesOf(newest.filter(({ id }) => id > last && id <= at).toReversed())
  }
}

function framesOf(entries: readonly AuditEntry[]): Uint8Array | null {
  const frames = entries.map((entry) => eventFrame('trail', safeJson(auditView(entry)), entry.id))
  return frames.length === 0 ? null : Buffer.concat(frames)
}

/** Returns null for a run that does not exist. */
async function unlessNotFound<T>(load: () => Promise<T>): Promise<T | null> {
  try {
    return await load()
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof UsageError) return null
    throw error
  }
}

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
