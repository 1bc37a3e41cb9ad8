import type { RunHooks } from '../endpoint.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import { readCheckpoint, readFail, readNothing, readProgress } from './bodies.ts'

const KB = 1_024
const BODY_MAX = 256 * KB
const CHECKPOINT_MAX = 8 * KB * KB

/** A run as the calls see it. */
export type Served = Pick<RunHooks, 'isStopping' | 'onEnd'> & {
  readonly handle: RunHandle
  /** How it was ended over this API, so that a repeated end is answered like the first. */
  ended: 'finish' | 'fail' | null
}

type Call<Body = unknown> = {
  readonly method: 'GET' | 'POST'
  readonly bytesMax: number
  readonly read: (body: unknown) => Body
  readonly act: (served: Served, body: Body) => unknown
  /** Answered at once, whatever else is under way: it must get through while the database is away. */
  readonly isUrgent?: true
}

function call<Body>(one: Call<Body>): Call {
  return one as Call
}

/** Every call there is, by its path behind UNSTUCK_URL. */
export const CALLS: ReadonlyMap<string, Call> = new Map(
  Object.entries({
    '/': call({ method: 'GET', bytesMax: BODY_MAX, read: readNothing, act: describe }),
    '/checkpoint': call({
      method: 'POST',
      bytesMax: CHECKPOINT_MAX,
      read: readCheckpoint,
      act: async (served, page) => ({ seq: await ours(served).checkpoint(page) }),
    }),
    '/progress': call({
      method: 'POST',
      bytesMax: BODY_MAX,
      read: readProgress,
      async act(served, progress) {
        await ours(served).progress(progress)
        return {}
      },
    }),
    '/heartbeat': call({
      method: 'POST',
      bytesMax: BODY_MAX,
      read: readNothing,
      act: (served) => ({ stop: served.isStopping() || served.handle.signal.aborted }),
      isUrgent: true,
    }),
    '/finish': call({ method: 'POST', bytesMax: BODY_MAX, read: readNothing, act: finish }),
    '/fail': call({ method: 'POST', bytesMax: BODY_MAX, read: readFail, act: fail }),
  }),
)

async function describe(served: Served): Promise<unknown> {
  const handle = ours(served)
  const { done, total } = await handle.progressSoFar()
  return {
    run: handle.id,
    source: handle.source,
    resumed: handle.resumed,
    page: handle.page,
    next: handle.next,
    lastItemId: handle.lastItemId,
    cursor: handle.cursor,
    done,
    total,
    pageTarget: handle.pageTarget,
  }
}

async function finish(served: Served): Promise<unknown> {
  if (served.ended === 'finish') return {}
  await ours(served).succeed()
  served.ended = 'finish'
  served.onEnd('finish')
  return {}
}

async function fail(
  served: Served,
  { error, retry }: { error: string; retry: boolean },
): Promise<unknown> {
  if (served.ended === 'fail') return {}
  await ours(served).fail(error, { retry })
  served.ended = 'fail'
  served.onEnd({ error, retry })
  return {}
}

/** Who lost its run hears that first, whatever it asks for. */
function ours({ handle }: Served): RunHandle {
  if (handle.lost) throw handle.lost
  return handle
}
