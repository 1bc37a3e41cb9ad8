export { defineCrawl } from './runtime/crawl.ts'
export type { Crawl, CrawlOptions, PageContext, PageResult } from './runtime/crawl.ts'
export { open } from './runtime/open.ts'
export type { OpenOptions, Unstuck } from './runtime/open.ts'
export type { Check, SummedRun, Summary } from './runtime/answers.ts'
export type { Explanation } from './runtime/explain.ts'
export type { RunCheckpoint, RunHandle } from './runtime/run-handle.ts'
export type { AdoptedOptions } from './adopted/mapping.ts'
export { defineConfig } from './surfaces/config.ts'
export type { Config } from './surfaces/config.ts'
export { recoverOnStart } from './surfaces/on-start.ts'
export type { RecoverOnStartOptions, StartReport } from './surfaces/on-start.ts'
export {
  AlreadyDone,
  AlreadyRunning,
  LeaseLost,
  PageBehind,
  NotFound,
  PageRejected,
  Refused,
  RetryLater,
  Stopping,
  StoreUnavailable,
  UnstuckError,
} from './model/errors.ts'
export { canonicalUrl } from './model/url.ts'
export type { InTransaction, Transaction } from './model/checkpoint.ts'
export type { UnstuckEvent } from './model/event.ts'
export type { NewItem } from './model/item.ts'
export type { PolicyOptions } from './model/policy.ts'
export type { Run } from './model/run.ts'
export type { NewTarget } from './model/target.ts'
export type { Verdict } from './model/verdict.ts'
