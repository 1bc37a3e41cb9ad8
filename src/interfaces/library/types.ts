import type { Transaction } from '../../core/model/checkpoint.ts'
import type { PageFields } from '../../core/worker/crawl-options.ts'
import type { Crawl } from '../../contracts/define-crawl.ts'
import type * as records from '../../presenters/records.ts'
import type * as results from '../../presenters/results.ts'
import type {
  Abortable,
  AgeOptions,
  BeginOptions,
  CleanOptions,
  EnqueueOptions,
  HistoryOptions,
  ItemsOptions,
  AcknowledgeOptions,
  ReasonOptions,
  RecoverOptions,
  ResetFailedOptions,
  RewindOptions,
  RunRef,
  RunsOptions,
  SourceRef,
  TargetRef,
  TargetsOptions,
  UnparkOptions,
  WorkOptions,
  WorkersOptions,
} from './options.ts'

/** One page of a list. */
export type Page<V> = {
  /** Its entries. */
  readonly items: readonly V[]
  /** `after` of the next page; null after the last. */
  readonly next: string | null
}

/** The first page of the audit trail, with counts over all of it. */
export type HistoryPage = Page<records.AuditEntry> & {
  /** How often each action was applied, by source. */
  readonly counts: readonly records.AuditCount[]
}

/** A list: `await` gives one page, `for await` all entries. Nothing is read before that. */
export interface Listing<V, P extends Page<V> = Page<V>> extends PromiseLike<P>, AsyncIterable<V> {}

/** Unstuck in your own code, from `open`. Its results are those of the command line with `--json`. */
export interface Unstuck extends AsyncDisposable {
  /**
   * Reports whether `begin` would start, resume or wait. It only advises; `begin` decides, atomically.
   * @throws {UsageError} @throws {DatabaseError}
   */
  check(source: SourceRef, options?: AgeOptions): Promise<results.Check>
  /**
   * Starts the source's run, or continues it after its last saved page. Atomic: of many callers, one gets the run. A run
   * whose process died is taken over (about 1 s on one host).
   * @throws {AlreadyRunningError} A live process has the run.
   * @throws {SourcePausedError} The source is paused.
   * @throws {AlreadyDoneError} With `once`: a run of this source has succeeded.
   * @throws {StoppingError} This process got SIGTERM.
   * @throws {PageRejectedError} The stored cursor does not fit `schema.cursor`.
   * @throws {UsageError} @throws {DatabaseError}
   * @example await using run = await unstuck.begin('tenders') // left without succeed() or fail(), it is released and can be resumed
   */
  begin<C = unknown, S = unknown, D = S>(
    source: string,
    options?: BeginOptions<C, S, D>,
  ): Promise<RunHandle<S, C>>
  /** Queues a run for the worker of its source. @throws {AlreadyRunningError} @throws {UsageError} @throws {DatabaseError} */
  enqueue(source: SourceRef, options?: EnqueueOptions): Promise<records.Run>
  /**
   * Works on a crawl in this process, as `unstuck work` does, until no work is left (`drain`) or the signal fires. SIGTERM
   * and SIGINT stop it after the pages in progress, unless `open` has `signals: false`.
   * @throws {UsageError} @throws {DatabaseError}
   */
  work(crawl: Crawl, options?: WorkOptions): Promise<results.WorkResult>
  /** Reports whether anything is stuck: live runs, workers, and what needs attention. @throws {DatabaseError} */
  status(options?: Abortable): Promise<results.Status>
  /** Returns every live run: active, resumable or dead. @throws {DatabaseError} */
  summary(options?: AgeOptions): Promise<results.Summary>
  /** Returns the verdict on a run or a target, and the settings that it depends on. @throws {NotFoundError} @throws {DatabaseError} */
  explain(what: RunRef | TargetRef, options?: Abortable): Promise<results.Explanation>
  /** Returns one run with its counts, groups and executions. @throws {NotFoundError} @throws {DatabaseError} */
  run(run: RunRef, options?: Abortable): Promise<results.RunDetail>
  /** Lists runs, newest first. @throws {UsageError} @throws {DatabaseError} */
  runs(options?: RunsOptions): Listing<records.ListedRun>
  /** Lists targets of a run. @throws {NotFoundError} @throws {UsageError} @throws {DatabaseError} */
  targets(run: RunRef, options?: TargetsOptions): Listing<records.Target>
  /** Lists saved items of a source, by key, with `since` by the time of their change; typed by a crawl. @throws {NotFoundError} @throws {UsageError} @throws {DatabaseError} */
  items<D = unknown>(source: Crawl<D> | SourceRef, options?: ItemsOptions): Listing<records.Item<D>>
  /** Lists workers that have not ended. @throws {UsageError} @throws {DatabaseError} */
  workers(options?: WorkersOptions): Listing<records.Worker>
  /** Lists changes by operators and by recovery, newest first. @throws {NotFoundError} @throws {UsageError} @throws {DatabaseError} */
  history(options?: HistoryOptions): Listing<records.AuditEntry, HistoryPage>
  /**
   * Assesses every live run and claim, and recovers what dead workers left. Never touches what a live worker holds. If a
   * worker only seems silent, it waits for two of its heartbeats first. With `dryRun` it returns the same verdicts and
   * changes nothing; pass its `plan` back to apply exactly that.
   * @throws {RefusedError} `plan` does not fit any more.
   * @throws {UsageError} @throws {DatabaseError}
   * @example const { verdicts, undo } = await unstuck.recover({ olderThan: '60m', sources: ['directory'] })
   */
  recover(options?: RecoverOptions): Promise<results.Recovery>
  /**
   * Marks dead runs as abandoned: the given ones, else all. Nothing is deleted.
   * @throws {RefusedError} `plan` does not fit any more. @throws {UsageError} A run is not dead.
   * @throws {NotFoundError} @throws {DatabaseError}
   */
  clean(runs?: RunRef | readonly RunRef[], options?: CleanOptions): Promise<results.Cleaning>
  /** Ends a live run. Its workers stop after the pages in progress. @throws {RefusedError} @throws {NotFoundError} @throws {DatabaseError} */
  cancel(run: RunRef, options?: ReasonOptions): Promise<results.ActionResult>
  /** Ends a live row of a table of your own as failed. @throws {RefusedError} @throws {NotFoundError} @throws {DatabaseError} */
  fail(run: RunRef, options?: ReasonOptions): Promise<results.ActionResult>
  /**
   * Pauses a source: nothing of it is started or claimed any more, and scheduled starts are skipped. Pages in progress are
   * finished; a run with one target goes on to its end.
   * @throws {RefusedError} @throws {NotFoundError} @throws {DatabaseError}
   */
  pause(source: SourceRef, options?: ReasonOptions): Promise<results.ActionResult>
  /** Ends the pause of a source. @throws {NotFoundError} @throws {DatabaseError} */
  unpause(source: SourceRef, options?: ReasonOptions): Promise<results.ActionResult>
  /**
   * Has the supervisor that waits (`unstuck run --cron`, `--interval`) start its command now. It starts no process.
   * @throws {RefusedError} @throws {AlreadyRunningError} @throws {NotFoundError} No supervisor waits. @throws {DatabaseError}
   */
  runNow(source: SourceRef, options?: ReasonOptions): Promise<results.ActionResult>
  /** Reopens an ended run: the next worker continues from its last saved pages. @throws {RefusedError} @throws {NotFoundError} @throws {DatabaseError} */
  resume(run: RunRef, options?: ReasonOptions): Promise<results.ActionResult>
  /** Queues a new run that repeats this one from the beginning. @throws {RefusedError} @throws {AlreadyRunningError} @throws {NotFoundError} @throws {DatabaseError} */
  retry(run: RunRef, options?: ReasonOptions): Promise<results.ActionResult>
  /** Reverts the last clean, cancel, fail or recovery of a run. @throws {RefusedError} @throws {NotFoundError} @throws {DatabaseError} */
  revert(run: RunRef, options?: ReasonOptions): Promise<results.ActionResult>
  /**
   * Marks runs and targets that failed, are stuck or parked as seen: they are kept, and no longer count as needing
   * attention. `undo` removes the mark.
   * @throws {NotFoundError} @throws {RefusedError} @throws {UsageError} @throws {DatabaseError}
   */
  acknowledge(
    what: RunRef | TargetRef | readonly (RunRef | TargetRef)[],
    options?: AcknowledgeOptions,
  ): Promise<results.ActionResult>
  /** Puts failed targets back in the queue, from their last saved pages. @throws {NotFoundError} @throws {UsageError} @throws {DatabaseError} */
  resetFailed(run: RunRef, options?: ResetFailedOptions): Promise<results.ActionResult>
  /** Parks targets until `unpark`, also those that a worker holds. @throws {NotFoundError} @throws {UsageError} @throws {DatabaseError} */
  park(
    targets: TargetRef | readonly TargetRef[],
    options?: ReasonOptions,
  ): Promise<results.ActionResult>
  /** Puts parked and stuck targets of a run back in the queue, from their last saved pages. @throws {NotFoundError} @throws {UsageError} @throws {DatabaseError} */
  unpark(run: RunRef, options?: UnparkOptions): Promise<results.ActionResult>
  /** Moves the cursor of a target back. Saved items stay. @throws {NotFoundError} @throws {RefusedError} @throws {UsageError} @throws {DatabaseError} */
  rewind(target: TargetRef, options: RewindOptions): Promise<results.ActionResult>
  /** Releases open runs and closes the database. */
  close(): Promise<void>
}

/** A page for `checkpoint`. */
export type RunCheckpoint<S = unknown, C = unknown> = Omit<PageFields<S, C>, 'inTransaction'> & {
  /** Its number, from 1; higher than the last one. */
  page: number
  /** The next page's address, for programs that follow addresses. @default null */
  next?: string | URL | null | undefined
}

/** A run in your own program, from `begin`. */
export interface RunHandle<S = unknown, C = unknown> extends AsyncDisposable {
  /** The id of the run. */
  readonly id: string
  /** Its source. */
  readonly source: string
  /** Whether it continues earlier work. */
  readonly resumed: boolean
  /** True after `succeed()`, `fail()` or `release()`. */
  readonly ended: boolean
  /** What `progress()` last reported, also before a resume; null: nothing. */
  readonly done: number | null
  /** What `progress()` last reported, also before a resume; null: nothing. */
  readonly total: number | null
  /** The last saved page; 0 before the first. */
  readonly page: number
  /** What the last page saved as `cursor`, else `initialCursor`. */
  readonly cursor: C
  /** What the last page saved as `next`; null before. */
  readonly next: string | null
  /** What the last page saved as `lastItemId`; null before. */
  readonly lastItemId: string | null
  /** The expected number of pages, as last reported; null before. */
  readonly pageTarget: number | null
  /** Aborts with a `StoppingError` or a `LeaseLostError`. Pass it to `fetch`. */
  readonly signal: AbortSignal
  /**
   * Returns the numbers of the pages still to do. Throws `signal.reason` once the run must stop. `to`: the last page.
   * @example for (const page of run.pages({ to: 20 })) await run.checkpoint({ page, items: await scrape(page) })
   */
  pages(options?: { to?: number | undefined }): Iterable<number>
  /**
   * Saves a page: its items and the cursor behind it, both or neither, and what `inTransaction` writes. When the promise
   * resolves, the page survives any crash. The last page again with the same content returns the same `seq` and changes
   * nothing, so a call whose response was lost can be repeated. Waits while the database is unreachable.
   * @throws {LeaseLostError} Another process has the run. Nothing was written; stop.
   * @throws {PageBehindError} `page` was passed already; continue from `data.at + 1`.
   * @throws {PageRejectedError} The content cannot be stored: `data.problems` names each path.
   * @throws {UsageError}
   */
  checkpoint(
    page: RunCheckpoint<S, C>,
    inTransaction?: (tx: Transaction) => unknown,
  ): Promise<{ readonly seq: number }>
  /** Reports progress in units of the program. @throws {LeaseLostError} @throws {UsageError} */
  progress(progress: { done: number; total: number }): Promise<void>
  /** Ends the run as succeeded. @throws {LeaseLostError} @throws {DatabaseError} */
  succeed(): Promise<void>
  /** Ends the run as failed. With `retry` the next `begin` continues it. @throws {LeaseLostError} @throws {UsageError} */
  fail(error: unknown, options?: { retry?: boolean | undefined }): Promise<void>
  /** Releases the run unfinished: the next `begin` continues it. `await using` calls it. */
  release(): Promise<void>
}
