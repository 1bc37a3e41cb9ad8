import * as v from 'valibot'
import { UsageError } from '../../../core/model/errors.ts'
import type { TargetInput } from '../../../core/model/target.ts'
import { canonicalUrl } from '../../../core/model/url.ts'
import type { PageReport } from '../../../core/worker/page.ts'
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
import { badBody, toHttpError } from '../run-api/errors.ts'
import { BODY_MAX_BYTES, CHECKPOINT_MAX_BYTES, pageFields } from '../run-api/routes.ts'
import type { SessionOptions, SessionRoute } from '../run-api/session.ts'
import { notPlanner, runEnded } from './errors.ts'
import { LINE_BYTES_MAX, type PageOutcome, type WorkerSession } from './worker-session.ts'

type WorkerRoute<P extends Schema = Schema, B extends Schema = Schema> = SessionRoute<
  { readonly worker: WorkerSession },
  P,
  B
>

/** Calls of one command under way at once, and those that wait. A call that waits for a target does not count. */
const CALLS_MAX = 64
const WAITING_MAX = 1_000

/** The API of a command that works on many targets. */
export function workerApi(
  worker: WorkerSession,
  onCall: () => void,
): SessionOptions<{ worker: WorkerSession }> {
  const limits = { calls: CALLS_MAX, waiting: WAITING_MAX, isSerial: false }
  return { routes: WORKER_ROUTES, context: { worker }, onCall, ...limits }
}

const TARGETS_MAX = 10_000
const CLAIMS_MAX = 1_000
const PAGES_MAX = 1_000
const WAIT_MAX_MS = 30_000
const ID_LENGTH_MAX = 64

const address = textOf('an address')
const item = object({ url: v.optional(text), key: v.optional(nonEmptyText), data: json })
const PAGE = { ...pageFields(item), done: v.optional(flag) }
const PAGE_RULE =
  'needs either next (the address of the next page; null after the last) or done (true or false), not both'
const page = v.pipe(
  object(PAGE),
  v.check(({ next, done }) => (next === undefined) !== (done === undefined), PAGE_RULE),
  v.transform(toReport),
)
const pageOfTarget = v.pipe(
  object({ target: nonEmptyText, ...PAGE }),
  v.check(({ next, done }) => (next === undefined) !== (done === undefined), PAGE_RULE),
  v.transform(({ target, ...rest }) => ({ target, report: toReport(rest) })),
)

type PageBody = v.InferOutput<ReturnType<typeof object<typeof PAGE>>>

/** `null` means not set, so that a claimed target may be sent back as it is. */
function toReport({ next, done, pageTarget, lastItemId, ...rest }: PageBody): PageReport {
  const report = {
    ...rest,
    next: next ?? null,
    done: done ?? next === null,
    ...(typeof pageTarget === 'number' && { pageTarget }),
    ...(typeof lastItemId === 'string' && { lastItemId }),
  }
  return report as PageReport
}

const newTarget = object({
  key: v.optional(nonEmptyText),
  group: v.optional(v.nullable(text)),
  url: v.optional(v.nullable(address)),
  data: v.optional(json),
})
/** What a header can hold. */
const headerText = v.pipe(
  text,
  v.regex(/^[\x20-\x7e]*$/, 'must be a duration such as 30s, or the value of a Retry-After header'),
)
const error = textOf('text that says what went wrong')

/** The schema of each body, as docs/reference/worker-api.openapi.json names them. */
export const WORKER_BODIES = {
  NewTargets: object({
    targets: v.pipe(
      v.array(newTarget, 'must be a list of targets'),
      v.maxLength(
        TARGETS_MAX,
        `must have at most ${TARGETS_MAX} targets: send more in further calls`,
      ),
    ),
  }),
  NewTarget: newTarget,
  Item: item,
  ClaimRequest: object({
    max: v.optional(integerBetween(1, CLAIMS_MAX), 1),
    waitMs: v.optional(integerBetween(0, WAIT_MAX_MS), 0),
    single: v.optional(flag, false),
  }),
  Page: page,
  Pages: object({
    pages: v.pipe(
      v.array(pageOfTarget, 'must be a list of pages'),
      v.maxLength(PAGES_MAX, `must have at most ${PAGES_MAX} pages: send more in further calls`),
      v.check(
        (pages) => new Set(pages.map(({ target }) => target)).size === pages.length,
        'must have at most one page of each target',
      ),
    ),
  }),
  PageOfTarget: pageOfTarget,
  TargetFailure: object({
    error,
    retry: v.optional(flag, true),
    retryAfter: v.optional(v.nullable(headerText)),
  }),
  Park: object({ error }),
  LogLine: object({
    message: text,
    level: v.optional(v.picklist(['info', 'warn', 'error'], 'must be info, warn or error'), 'info'),
    target: v.optional(
      v.nullable(v.pipe(text, v.maxLength(ID_LENGTH_MAX, 'must be the id of a target'))),
    ),
    fields: v.optional(
      v.pipe(
        v.record(v.string(), json),
        v.check(
          (fields) => Buffer.byteLength(JSON.stringify(fields)) <= LINE_BYTES_MAX,
          'must be at most 16 KB of JSON',
        ),
      ),
    ),
  }),
}
const target = object({ id: nonEmptyText })

/** Every call, by its path behind UNSTUCK_URL. */
export const WORKER_ROUTES: readonly WorkerRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/',
    handle: ({ worker }) => worker.planning.describe(worker.isStopping),
  }),
  defineRoute({
    method: 'POST',
    path: '/planning',
    handle: async ({ worker }) => ({ planner: await worker.planning.claim() }),
  }),
  defineRoute({
    method: 'POST',
    path: '/targets',
    body: WORKER_BODIES.NewTargets,
    maxBytes: CHECKPOINT_MAX_BYTES,
    async handle({ worker, body }) {
      const planned = await worker.planning
        .add(body.targets.map(toTarget))
        .catch((error: unknown) => {
          throw error instanceof UsageError ? badBody([error.message.replace(/\.$/, '')]) : error
        })
      if (planned === null) throw runEnded()
      return { planned }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/planned',
    async handle({ worker }) {
      if (!(await worker.planning.finish())) throw notPlanner()
      return {}
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/claim',
    body: WORKER_BODIES.ClaimRequest,
    async handle({ worker, body, signal }) {
      const { targets, ended, stop } = await worker.claim(body, signal)
      return { targets: targets.map((held) => held.toJson()), ended, stop }
    },
    waits: true,
  }),
  defineRoute({
    method: 'POST',
    path: '/checkpoints',
    body: WORKER_BODIES.Pages,
    maxBytes: CHECKPOINT_MAX_BYTES,
    async handle({ worker, body: { pages } }) {
      const outcomes = await worker.checkpoint(pages)
      return { outcomes: outcomes.map((one, n) => ({ target: pages[n]!.target, ...toJson(one) })) }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/checkpoint',
    params: target,
    body: page,
    maxBytes: CHECKPOINT_MAX_BYTES,
    async handle({ worker, params: { id }, body: report }) {
      const [outcome] = await worker.checkpoint([{ target: id, report }])
      if (!outcome!.ok) throw outcome!.error
      return outcome!.value
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/transaction',
    params: target,
    body: page,
    maxBytes: CHECKPOINT_MAX_BYTES,
    handle: ({ worker, params, body: report }) => worker.transactions.begin(params.id, report),
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/transaction/end',
    params: target,
    handle: ({ worker, params }) => worker.transactions.end(params.id),
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/finish',
    params: target,
    async handle({ worker, params }) {
      await worker.end(params.id, { by: 'finish' })
      return {}
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/release',
    params: target,
    async handle({ worker, params }) {
      await worker.end(params.id, { by: 'release' })
      return {}
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/fail',
    params: target,
    body: WORKER_BODIES.TargetFailure,
    handle: ({ worker, params, body: { error, retry, retryAfter } }) =>
      worker.end(params.id, { by: 'fail', error, retry, retryAfter: retryAfter ?? undefined }),
  }),
  defineRoute({
    method: 'POST',
    path: '/targets/:id/park',
    params: target,
    body: WORKER_BODIES.Park,
    async handle({ worker, params, body }) {
      await worker.end(params.id, { by: 'park', error: body.error })
      return {}
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/heartbeat',
    handle: ({ worker }) => ({ stop: worker.isStopping, lost: worker.held.takeLost() }),
    skipsQueue: true,
  }),
  defineRoute({
    method: 'POST',
    path: '/log',
    body: WORKER_BODIES.LogLine,
    handle({ worker, body }) {
      worker.log(body)
      return {}
    },
    skipsQueue: true,
  }),
]

function defineRoute<P extends Schema, B extends Schema>(
  route: Omit<WorkerRoute<P, B>, 'maxBytes'> & { maxBytes?: number },
): WorkerRoute {
  return { maxBytes: BODY_MAX_BYTES, ...route }
}

/** The canonical address is the key of a target that has none of its own. */
function toTarget({ key, group, url, data }: v.InferOutput<typeof newTarget>): TargetInput {
  const ownKey = key ?? (typeof url === 'string' ? (canonicalUrl(url) ?? url) : undefined)
  return {
    key: ownKey!,
    ...(typeof group === 'string' && { group }),
    ...(typeof url === 'string' && { url }),
    ...(data !== undefined && { data }),
  }
}

function toJson(outcome: PageOutcome): Record<string, unknown> {
  if (outcome.ok) return outcome.value
  const known = toHttpError(outcome.error)
  // The whole call fails: whether the page is saved is not known.
  if (!known) throw outcome.error
  return { error: { code: known.code, message: known.message } }
}
