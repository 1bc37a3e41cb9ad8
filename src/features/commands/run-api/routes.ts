import type { RunHooks } from '../endpoint.ts'
import type { RunHandle } from '../../../core/worker/run-handle.ts'
import { readCheckpoint, readFail, readEmpty, readProgress } from './bodies.ts'

const KB = 1_024
const BODY_MAX = 256 * KB
const CHECKPOINT_MAX = 8 * KB * KB

/** A run as the calls see it. */
export type CallContext = Pick<RunHooks, 'isStopping' | 'onEnd'> & {
  readonly handle: RunHandle
  /** How it was ended over this API, so that a repeated end is answered like the first. */
  ended: 'finish' | 'fail' | null
}

type Route<Body = unknown> = {
  readonly method: 'GET' | 'POST'
  readonly maxBytes: number
  readonly read: (body: unknown) => Body
  readonly handle: (served: CallContext, body: Body) => unknown
  /** Answered at once, whatever else is under way: it must get through while the database is away. */
  readonly skipsQueue?: true
}

function defineRoute<Body>(route: Route<Body>): Route {
  return route as Route
}

/** Every call there is, by its path behind UNSTUCK_URL. */
export const ROUTES: ReadonlyMap<string, Route> = new Map(
  Object.entries({
    '/': defineRoute({ method: 'GET', maxBytes: BODY_MAX, read: readEmpty, handle: describe }),
    '/checkpoint': defineRoute({
      method: 'POST',
      maxBytes: CHECKPOINT_MAX,
      read: readCheckpoint,
      handle: async (served, page) => ({ seq: await ownedRun(served).checkpoint(page) }),
    }),
    '/progress': defineRoute({
      method: 'POST',
      maxBytes: BODY_MAX,
      read: readProgress,
      async handle(served, progress) {
        await ownedRun(served).progress(progress)
        return {}
      },
    }),
    '/heartbeat': defineRoute({
      method: 'POST',
      maxBytes: BODY_MAX,
      read: readEmpty,
      handle: (served) => ({ stop: served.isStopping() || served.handle.signal.aborted }),
      skipsQueue: true,
    }),
    '/finish': defineRoute({ method: 'POST', maxBytes: BODY_MAX, read: readEmpty, handle: finish }),
    '/fail': defineRoute({ method: 'POST', maxBytes: BODY_MAX, read: readFail, handle: fail }),
  }),
)

async function describe(context: CallContext): Promise<unknown> {
  const handle = ownedRun(context)
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

async function finish(context: CallContext): Promise<unknown> {
  if (context.ended === 'finish') return {}
  await ownedRun(context).succeed()
  context.ended = 'finish'
  context.onEnd('finish')
  return {}
}

async function fail(
  context: CallContext,
  { error, retry }: { error: string; retry: boolean },
): Promise<unknown> {
  if (context.ended === 'fail') return {}
  await ownedRun(context).fail(error, { retry })
  context.ended = 'fail'
  context.onEnd({ error, retry })
  return {}
}

/** Who lost its run hears that first, whatever it asks for. */
function ownedRun({ handle }: CallContext): RunHandle {
  if (handle.lost) throw handle.lost
  return handle
}
