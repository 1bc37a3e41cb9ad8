import * as v from 'valibot'
import { count, time, timeOrNull } from './common.ts'
import { actions, presentedFields } from './presented.ts'
import { listedRun, run, runStatus, liveness, targetStatus } from './run.ts'
import { ROLES } from '../../core/model/role.ts'

/** Who is asking whom. */
export const session = v.object({
  version: v.string(),
  name: v.string(),
  role: v.picklist(ROLES),
  /** False: nobody needs to log in (loopback without tokens), so there is nothing to log out of. */
  loggedIn: v.boolean(),
  readOnly: v.boolean(),
  store: v.object({ engine: v.picklist(['sqlite', 'postgres']), where: v.string() }),
  now: time,
})

export const alert = v.object({
  cause: v.string(),
  rule: v.string(),
  source: v.nullable(v.string()),
  run: v.nullable(v.string()),
  because: v.string(),
  command: v.string(),
  since: time,
  lastSentAt: timeOrNull,
  resolvedAt: timeOrNull,
})

/** `status --json`, with what the first screen shows besides. */
export const overview = v.object({
  now: time,
  ...presentedFields,
  /** Worst first: something is stuck, something needs attention, all is well, nothing runs. */
  state: v.picklist(['stuck', 'attention', 'well', 'idle']),
  /** Live ones: all of them, or the 200 that fare worst. */
  runs: v.array(listedRun),
  /** How many are live, shown or not. */
  liveRuns: count,
  workers: v.object(
    Object.fromEntries(liveness.options.map((one) => [one, v.optional(count)])) as Record<
      (typeof liveness.options)[number],
      v.OptionalSchema<typeof count, undefined>
    >,
  ),
  attention: v.array(
    v.object({
      run: v.nullable(v.string()),
      source: v.string(),
      what: v.string(),
      because: v.nullable(v.string()),
      command: v.string(),
    }),
  ),
  sourceLocks: v.array(
    v.object({
      source: v.string(),
      worker: v.nullable(v.string()),
      since: timeOrNull,
      endingSince: timeOrNull,
      gaveUp: v.nullable(v.object({ at: time, because: v.string() })),
    }),
  ),
  latest: v.nullable(run),
  /** Alerts that are open now; the badge. */
  alerts: v.array(alert),
  /** All runs ever, by status. */
  totals: v.record(runStatus, count),
})

/** Charts. One point per step; a step without a sample has null, which is not the same as 0. */
export const series = v.object({
  since: time,
  until: time,
  stepSeconds: count,
  points: v.array(
    v.object({
      at: time,
      pages: v.nullable(count),
      items: v.nullable(count),
      recoveries: count,
    }),
  ),
})

/** Failed, held and parked targets with the same kind of error. */
export const deadLetters = v.object({
  total: count,
  actions,
  /** There are more than were looked at: each count is the least it can be, and groups may be missing. */
  isPartial: v.boolean(),
  groups: v.array(
    v.object({
      fingerprint: v.string(),
      /** One of the errors, whole. */
      error: v.string(),
      count,
      statuses: v.partial(v.object({ failed: count, stuck: count, parked: count })),
      sources: v.array(v.string()),
      firstAt: time,
      lastAt: time,
      sample: v.array(
        v.object({ id: v.string(), run: v.string(), key: v.string(), status: targetStatus }),
      ),
      actions,
    }),
  ),
})

/** What people did through the API, whether or not it changed anything. */
export const operation = v.object({
  id: count,
  at: time,
  actor: v.string(),
  address: v.nullable(v.string()),
  call: v.string(),
  selection: v.unknown(),
  plan: v.nullable(v.string()),
  status: count,
  result: v.string(),
})

/** Lines of a run's log, from after a place in it. */
export const logPage = v.object({
  lines: v.array(
    v.object({ at: timeOrNull, stream: v.picklist(['out', 'err', 'event']), text: v.string() }),
  ),
  /** Give it back as `after` to go on. */
  next: v.nullable(v.string()),
  /** True: these are the newest lines, in place of what was shown before; false: they follow it. */
  anew: v.boolean(),
  /** Why there is none: it was kept on another machine, or the run printed nothing. */
  because: v.nullable(v.string()),
})
export type LogPage = v.InferOutput<typeof logPage>
