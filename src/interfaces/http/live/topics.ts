import { NotFound, UsageError } from '../../../core/model/errors.ts'
import type { RunId } from '../../../core/model/id.ts'
import { safeJson } from '../../../core/events/safe-text.ts'
import { TrailReader } from '../../../core/recovery/audit-reader.ts'
import type { AuditEntry } from '../../../core/store/store.ts'
import { lookAround } from '../../../presenters/overview.ts'
import { runDetail } from '../../../presenters/run.ts'
import { findRun } from '../../../presenters/find.ts'
import { rollCall } from '../../../presenters/workers.ts'
import { auditView } from '../../../presenters/view.ts'
import type { Ground } from '../route.ts'
import { eventFrame } from '../../../lib/http/event-stream.ts'
import { readRunLog, type RunLog } from './run-log.ts'

/** Something that is looked at once for everybody who wants to know. */
export interface Topic {
  /** Looks again. What those are told who know how it was before; null when it is as it was. */
  look(): Promise<Uint8Array | null>
  /** What those are told who have just come, as of the last look; null when there is nothing to say yet. */
  greet(lastEventId: string | undefined): Promise<Uint8Array | null>
}

/** What a topic in the address stands for; null when there is no such thing. */
export function makeTopic(name: string, ground: Ground): Topic | null {
  const { store, settings } = ground
  const [kind, id] = name.split(':') as [string, string | undefined]
  if (id !== undefined && !ID.test(id)) return null
  switch (id === undefined ? kind : `${kind}:`) {
    case 'overview':
      return new State('overview', () => lookAround(store, settings.policyOf))
    case 'workers':
      return new State('workers', async () => ({
        items: await rollCall(store, await store.now()),
      }))
    case 'trail':
      return new Trail(ground)
    case 'run:':
      return new State('run', async () =>
        runDetail(store, await findRun(store, id!), settings.policyOf),
      )
    case 'log:':
      return new Log(ground, id!)
    default:
      return null
  }
}

const ID = /^[0-9a-f-]{8,36}$/

/** A picture of how it is; told when it has changed. */
class State implements Topic {
  readonly #event: string
  readonly #look: () => Promise<object>
  #known = ''
  #frame: Uint8Array | null = null

  constructor(event: string, look: () => Promise<object>) {
    this.#event = event
    this.#look = look
  }

  async look(): Promise<Uint8Array | null> {
    const seen = await unlessGone(this.#look)
    if (!seen) return null
    // The time of the look alone is no news.
    const known = safeJson({ ...seen, now: undefined })
    if (known === this.#known) return null
    this.#known = known
    return (this.#frame = eventFrame(this.#event, safeJson(seen)))
  }

  async greet(): Promise<Uint8Array | null> {
    return this.#frame
  }
}

/** Lines that newcomers get to see. */
const LINES_SHOWN = 200

/** What a run says: its newest lines, and then those that follow. */
class Log implements Topic {
  readonly #ground: Ground
  readonly #id: RunId
  #log: RunLog | null = null

  constructor(ground: Ground, id: RunId) {
    this.#ground = ground
    this.#id = id
  }

  async look(): Promise<Uint8Array | null> {
    const run = await unlessGone(() => findRun(this.#ground.store, this.#id))
    if (!run) return null
    const before = this.#log
    const log = await readRunLog(this.#ground, run, before?.next ?? null, LINES_SHOWN)
    const isSame = before?.because === log.because && !log.anew
    const lines = log.anew ? log.lines : [...(before?.lines ?? []), ...log.lines]
    this.#log = { ...log, lines: lines.slice(-LINES_SHOWN) }
    return isSame && log.lines.length === 0 ? null : eventFrame('log', safeJson(log))
  }

  async greet(): Promise<Uint8Array | null> {
    return this.#log && eventFrame('log', safeJson({ ...this.#log, anew: true }))
  }
}

/** After a cut, at most so many entries are told again: the newest. */
const REPLAYED_MAX = 500

/** What was done to whose runs, as it happens; who was cut off hears what they missed. */
class Trail implements Topic {
  readonly #ground: Ground
  #reader: TrailReader | null = null

  constructor(ground: Ground) {
    this.#ground = ground
  }

  async look(): Promise<Uint8Array | null> {
    this.#reader ??= await TrailReader.fromNow(this.#ground.store)
    return framesOf(await this.#reader.next())
  }

  async greet(lastEventId: string | undefined): Promise<Uint8Array | null> {
    const last = Number(lastEventId ?? Number.NaN)
    const at = this.#reader?.at ?? 0
    if (!Number.isSafeInteger(last) || last >= at) return null
    const newest = await this.#ground.store.audit({ newestFirst: true, limit: REPLAYED_MAX })
    return framesOf(newest.filter(({ id }) => id > last && id <= at).toReversed())
  }
}

function framesOf(entries: readonly AuditEntry[]): Uint8Array | null {
  const frames = entries.map((entry) => eventFrame('trail', safeJson(auditView(entry)), entry.id))
  return frames.length === 0 ? null : Buffer.concat(frames)
}

/** A run that was deleted, or never was, is no trouble: there is just nothing to tell. */
async function unlessGone<T>(look: () => Promise<T>): Promise<T | null> {
  try {
    return await look()
  } catch (error) {
    if (error instanceof NotFound || error instanceof UsageError) return null
    throw error
  }
}
