export { defineCrawl } from './contracts/define-crawl.ts'
export type {
  Crawl,
  CrawlOptions,
  CrawlSchemas,
  CrawlTypes,
  ItemData,
} from './contracts/define-crawl.ts'
export type * from './core/worker/crawl-options.ts'
export type { SchemaIssue, SchemaResult, StandardSchema } from './core/model/standard-schema.ts'
export { open } from './interfaces/library/unstuck.ts'
export type * from './interfaces/library/options.ts'
export type * from './interfaces/library/types.ts'
export type * from './presenters/records.ts'
export type * from './presenters/results.ts'
export type {
  AdoptedColumns,
  AdoptedOptions,
  AdoptedStatuses,
  StatusValue,
  UserRow,
} from './features/adopted/mapping.ts'
export type { AlertOptions, ChannelOptions, WebhookOptions } from './features/alerts/config.ts'
export type { AlertKind, ChannelName } from './features/alerts/rule.ts'
export { defineConfig } from './app/config.ts'
export type { Config, DatabaseOptions } from './app/config.ts'
export { recoverOnStart } from './app/recover-on-start.ts'
export type { RecoverOnStartOptions, StartReport } from './app/recover-on-start.ts'
export {
  AlreadyDoneError,
  AlreadyRunningError,
  DatabaseError,
  LeaseLostError,
  PageBehindError,
  NotFoundError,
  PageRejectedError,
  PlanChangedError,
  RefusedError,
  SourcePausedError,
  StoppingError,
  UnstuckError,
  UsageError,
} from './core/model/errors.ts'
export type { DatabaseErrorCode } from './core/model/errors.ts'
export type {
  DatabaseFacts,
  ErrorCode,
  ErrorData,
  ErrorJson,
  Problem,
} from './core/model/error-data.ts'
export { exitCodeOf } from './core/model/exit-codes.ts'
export { NonRetryableError, RetryLaterError } from './core/model/page-errors.ts'
export type { Duration, Timestamp } from './core/model/time.ts'
export { canonicalUrl } from './core/model/url.ts'
export type { InTransaction, Transaction } from './core/model/checkpoint.ts'
export type { UnstuckEvent } from './core/model/event.ts'
export type { NewItem } from './core/model/item.ts'
export type { GroupPolicyOptions, PolicyOptions } from './lib/validate/policy-options.ts'
export type { Preset } from './core/model/policy-of.ts'
export type { HealthState, Severity } from './core/decide/health.ts'
export type { RunKind, RunStatus } from './core/model/run.ts'
export type { RunOrigin } from './core/model/traits.ts'
export type { TargetStatus } from './core/model/target.ts'
export type {
  Action as VerdictAction,
  Decision,
  RunEvidence,
  Verdict as RecoveryVerdict,
} from './core/model/verdict.ts'
export type { Evidence, Liveness } from './core/model/worker.ts'
