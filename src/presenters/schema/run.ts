import * as v from 'valibot'
import { HEALTH_STATES, SEVERITIES } from '../../core/decide/health.ts'
import { ADOPTED_ACTIONS, RUN_STATUSES } from '../../core/model/run.ts'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import { count, time, timeOrNull } from './common.ts'
import { presentedFields } from './presented.ts'

/** Runs and targets, as docs/reference/json-output.md has them. */

export const runStatus = v.picklist(RUN_STATUSES)
export const targetStatus = v.picklist(TARGET_STATUSES)
export const health = v.picklist(HEALTH_STATES)
export const liveness = v.picklist(['present', 'gone', 'silent', 'stalled', 'unknown'])

export const run = v.object({
  id: v.string(),
  source: v.string(),
  status: runStatus,
  createdAt: time,
  startedAt: timeOrNull,
  finishedAt: timeOrNull,
  lastActivityAt: time,
  done: count,
  total: count,
  extracted: count,
  skipped: count,
  attempt: count,
  error: v.nullable(v.string()),
  owner: v.nullable(
    v.object({ worker: v.string(), host: v.nullable(v.string()), pid: v.nullable(count) }),
  ),
  resumable: v.boolean(),
  retryOf: v.nullable(v.string()),
  /** The row of a table of one's own; `key` is empty where the whole table is the run. */
  adopted: v.nullable(
    v.object({ table: v.string(), key: v.string(), can: v.array(v.picklist(ADOPTED_ACTIONS)) }),
  ),
  /** In a list: its error is longer than what is here. */
  cut: v.optional(v.literal(true)),
})

/** How fast a run goes, from the samples of the last minutes; null while there is too little to tell. */
export const pace = v.nullable(
  v.object({
    pagesPerMinute: v.number(),
    itemsPerMinute: v.number(),
    /** Seconds until all targets are done, as a range; null when it cannot be told. */
    etaSeconds: v.nullable(v.object({ from: v.number(), to: v.number() })),
  }),
)

/** A run in a list. `health`, `severity` and `because` only of a live one. */
export const listedRun = v.object({
  ...run.entries,
  pages: count,
  /** False while targets still come in: the total is not known yet. */
  planned: v.boolean(),
  kind: v.picklist(['crawl', 'single']),
  health: v.nullable(health),
  severity: v.nullable(v.picklist(SEVERITIES)),
  because: v.nullable(v.string()),
  pace,
})

export const counts = v.object({
  total: count,
  planned: count,
  in_progress: count,
  done: count,
  failed: count,
  stuck: count,
  parked: count,
  pages: count,
  extracted: count,
  skipped: count,
})
export const groupCounts = v.object({ group: v.nullable(v.string()), ...counts.entries })

export const target = v.object({
  id: v.string(),
  run: v.string(),
  key: v.string(),
  group: v.nullable(v.string()),
  status: targetStatus,
  page: count,
  pageTarget: v.nullable(count),
  next: v.nullable(v.string()),
  lastItemId: v.nullable(v.string()),
  cursor: v.unknown(),
  attempts: count,
  crashes: count,
  worker: v.nullable(v.string()),
  claimedAt: timeOrNull,
  lastActivityAt: time,
  lastError: v.nullable(v.string()),
  finishedAt: timeOrNull,
  /** In a list: its error, cursor or next address is longer than what is here. */
  cut: v.optional(v.literal(true)),
})

export const owner = v.object({
  worker: v.string(),
  host: v.string(),
  pid: count,
  label: v.nullable(v.string()),
  startedAt: time,
  lastHeartbeatAt: time,
  liveness,
  because: v.string(),
})

export const worker = v.object({
  id: v.string(),
  source: v.string(),
  host: v.string(),
  pid: count,
  label: v.nullable(v.string()),
  startedAt: time,
  lastHeartbeatAt: time,
  liveness,
  because: v.string(),
  targets: count,
})

export const execution = v.object({
  id: v.string(),
  host: v.string(),
  command: v.unknown(),
  outputDir: v.string(),
  log: v.string(),
  startedAt: time,
  finishedAt: timeOrNull,
  exitCode: v.nullable(count),
  signal: v.nullable(v.string()),
  because: v.nullable(v.string()),
  artifacts: v.nullable(count),
  peakMemory: v.nullable(count),
})

export const auditEntry = v.object({
  id: count,
  at: time,
  actor: v.string(),
  action: v.string(),
  source: v.string(),
  run: v.string(),
  target: v.nullable(v.string()),
  because: v.string(),
  evidence: v.array(v.string()),
  facts: v.nullable(v.record(v.string(), v.unknown())),
  before: v.unknown(),
  after: v.unknown(),
})

/** `show --json`, and what the run's page needs besides. */
export const runDetail = v.object({
  ...presentedFields,
  run: v.object({ ...listedRun.entries, input: v.unknown() }),
  counts,
  groups: v.array(groupCounts),
  needsAttention: v.array(target),
  executions: v.array(execution),
  audit: v.array(v.object({ ...auditEntry.entries, key: v.nullable(v.string()) })),
  /** The worker that holds it, or held it last. */
  owner: v.nullable(owner),
  /** The commands of the command line that fit it now. */
  commands: v.array(v.string()),
})

export const setting = v.object({
  name: v.string(),
  group: v.nullable(v.string()),
  value: v.union([v.string(), v.number(), v.boolean(), v.null()]),
  origin: v.picklist(['default', 'preset', 'crawl', 'adopted', 'config']),
})

/** `explain --json` */
export const explanation = v.object({
  ...presentedFields,
  run,
  target: v.nullable(target),
  verdict: v.object({
    action: v.string(),
    because: v.string(),
    blockedBy: v.nullable(v.string()),
  }),
  owner: v.nullable(owner),
  evidence: v.array(v.string()),
  facts: v.nullable(v.record(v.string(), v.unknown())),
  policy: v.array(setting),
  changes: v.array(v.string()),
  trail: v.array(auditEntry),
})
