import * as v from 'valibot'
import { describeValue } from '../../../core/model/fields.ts'
import { LIMITS } from '../../../core/model/limits.ts'
import { canonicalUrl } from '../../../core/model/url.ts'
import type { RunCheckpoint, RunHandle } from '../../../core/worker/run-handle.ts'
import {
  flag,
  integerBetween,
  json,
  nonEmptyText,
  object,
  text,
  textOf,
  type Schema,
} from '../../../lib/validate/validate.ts'
import type { SessionOptions, SessionRoute } from './session.ts'

const KB = 1_024
export const BODY_MAX_BYTES = 256 * KB
export const CHECKPOINT_MAX_BYTES = 8 * KB * KB
/** Calls of one run under way at once. */
const CALLS_MAX = 16

export type RunEnd = 'finish' | { readonly error: string; readonly retry: boolean }

/** The callbacks of a run's owner. */
export type RunHooks = {
  /** Called for every call with a valid token. */
  onCall(): void
  /** Returns true if the command should stop. */
  isStopping(): boolean
  /** Called when the command has ended its run, and this is stored. */
  onEnd(end: RunEnd): void
}

/** What a call acts on. */
type RunContext = Pick<RunHooks, 'isStopping' | 'onEnd'> & {
  readonly handle: RunHandle
  /** The call that ended the run, so that a repetition of it succeeds too. */
  ended: 'finish' | 'fail' | null
}

type RunRoute<B extends Schema = Schema> = SessionRoute<{ readonly run: RunContext }, Schema, B>

/** The API of one run. */
export function runSession(
  handle: RunHandle,
  hooks: RunHooks,
): SessionOptions<{ run: RunContext }> {
  const onCall = (): void => hooks.onCall()
  const run = {
    handle,
    isStopping: () => hooks.isStopping(),
    onEnd: (end: RunEnd) => hooks.onEnd(end),
    ended: null,
  }
  return { routes: ROUTES, context: { run }, calls: CALLS_MAX, waiting: 0, isSerial: true, onCall }
}

const item = v.pipe(
  object({ url: v.optional(text), key: v.optional(nonEmptyText), data: json }),
  v.check(
    ({ url, key }) => key !== undefined || (url !== undefined && canonicalUrl(url) !== null),
    ({ input: { url } }) =>
      `needs an http(s) url or a key of your own, but has ${url === undefined ? 'neither' : `the url ${describeValue(url)}`}`,
  ),
)
function atMost(bytes: number) {
  return v.maxBytes<string, number, string>(bytes, `must be of ${bytes} bytes at most`)
}

/** The fields of a page. The APIs of a run and of a worker differ in what they check of an item at once. */
export function pageFields<S extends Schema>(itemSchema: S) {
  return {
    page: integerBetween(1),
    items: v.optional(v.array(itemSchema, 'must be a list of items'), []),
    next: v.optional(v.nullable(v.pipe(textOf('an address'), atMost(LIMITS.url)))),
    lastItemId: v.optional(v.nullable(v.pipe(text, atMost(LIMITS.lastItemId)))),
    cursor: v.optional(json),
    skipped: v.optional(integerBetween(0)),
    pageTarget: v.optional(v.nullable(integerBetween(0))),
  }
}
const checkpoint = v.pipe(
  object(pageFields(item)),
  // The response of `GET /` may be sent back as it is: null means not set.
  v.transform(({ pageTarget, lastItemId, ...rest }) => {
    const page = {
      ...rest,
      ...(typeof pageTarget === 'number' && { pageTarget }),
      ...(typeof lastItemId === 'string' && { lastItemId }),
    }
    return page as RunCheckpoint
  }),
)
const count = integerBetween(0, Number.MAX_SAFE_INTEGER)
const failure = object({
  error: textOf('text that says what went wrong'),
  retry: v.optional(flag, false),
})

/** The schema of each body, as docs/reference/run-api.openapi.json names them. */
export const BODY_SCHEMAS = {
  Checkpoint: checkpoint,
  Item: item,
  Progress: object({ done: count, total: count }),
  Failure: failure,
}

/** Every call, by its path behind UNSTUCK_URL. */
export const ROUTES: readonly RunRoute[] = [
  defineRoute({ method: 'GET', path: '/', handle: ({ run }) => describe(run) }),
  defineRoute({
    method: 'POST',
    path: '/checkpoint',
    body: checkpoint,
    maxBytes: CHECKPOINT_MAX_BYTES,
    handle: ({ run, body }) => ownedRun(run).checkpoint(body),
  }),
  defineRoute({
    method: 'POST',
    path: '/progress',
    body: BODY_SCHEMAS.Progress,
    async handle({ run, body }) {
      await ownedRun(run).progress(body)
      return {}
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/heartbeat',
    handle: ({ run }) => ({ stop: run.isStopping() || run.handle.signal.aborted }),
    skipsQueue: true,
  }),
  defineRoute({
    method: 'POST',
    path: '/finish',
    async handle({ run }) {
      if (run.ended === 'finish') return {}
      await ownedRun(run).succeed()
      run.ended = 'finish'
      run.onEnd('finish')
      return {}
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/fail',
    body: failure,
    async handle({ run, body: { error, retry } }) {
      if (run.ended === 'fail') return {}
      await ownedRun(run).fail(error, { retry })
      run.ended = 'fail'
      run.onEnd({ error, retry })
      return {}
    },
  }),
]

function defineRoute<B extends Schema>(
  route: Omit<RunRoute<B>, 'maxBytes'> & { maxBytes?: number },
): RunRoute {
  return { maxBytes: BODY_MAX_BYTES, ...route }
}

function describe(run: RunContext): unknown {
  const handle = ownedRun(run)
  return {
    run: handle.id,
    source: handle.source,
    resumed: handle.resumed,
    page: handle.page,
    next: handle.next,
    lastItemId: handle.lastItemId,
    cursor: handle.cursor,
    done: handle.done ?? 0,
    total: handle.total ?? 1,
    pageTarget: handle.pageTarget,
  }
}

/** A lost run is reported first, whatever is called. */
function ownedRun({ handle }: RunContext): RunHandle {
  if (handle.lost) throw handle.lost
  return handle
}
