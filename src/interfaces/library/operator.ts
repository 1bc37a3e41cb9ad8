import { hostname } from 'node:os'
import { contextFor } from '../../app/open-context.ts'
import type { Settings } from '../../contracts/settings.ts'
import { checkCall, type Arguments, type Fields } from '../../core/model/fields.ts'
import { LIVE_STATUSES, type Run } from '../../core/model/run.ts'
import { checkSource } from '../../lib/validate/source.ts'
import type { Target } from '../../core/model/target.ts'
import { parseDuration, type Millis } from '../../core/model/time.ts'
import { adviseStart, presentCheck } from '../../presenters/check.ts'
import { assess } from '../../core/recovery/assess.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import type { Store } from '../../core/store/store.ts'
import { abortable } from '../../core/worker/abortable.ts'
import type { Crawl } from '../../contracts/define-crawl.ts'
import { acknowledge } from '../../presenters/acknowledge.ts'
import { actionResultView, type ActionResult } from '../../presenters/action-result.ts'
import { cleanByPlan, recoverByPlan } from '../../presenters/apply-plan.ts'
import { loadSummary } from '../../presenters/cleaning.ts'
import { presentExplanation } from '../../presenters/explain.ts'
import {
  findRun,
  findRunOfSource,
  findRunOfSourceToChange,
  findRunOrTarget,
  findRunToChange,
  findTarget,
  findTargets,
} from '../../presenters/find.ts'
import { presentHistory, readHistory } from '../../presenters/history.ts'
import { hasItems, listItems, checkRunOfSource } from '../../presenters/items.ts'
import { loadOverview, presentOverview } from '../../presenters/overview.ts'
import { toJson } from '../../presenters/presented.ts'
import type * as records from '../../presenters/records.ts'
import * as runActions from '../../presenters/run-actions.ts'
import { loadRunReport, presentRun } from '../../presenters/run.ts'
import { listRuns } from '../../presenters/runs.ts'
import * as sourceActions from '../../presenters/source-actions.ts'
import * as targetActions from '../../presenters/target-actions.ts'
import { presentTargets } from '../../presenters/targets.ts'
import { itemView, runView } from '../../presenters/view.ts'
import { workerViews } from '../../presenters/workers.ts'
import { ABORTABLE, FIELDS, RUN, RUNS, SOURCE, TARGET, TARGETS } from './option-fields.ts'
import type {
  Abortable,
  ItemsOptions,
  ListOptions,
  RunRef,
  Since,
  SourceRef,
  TargetRef,
} from './options.ts'
import type { Listing, Page, Unstuck } from './types.ts'

const PAGE_SIZE = 50

/** The calls of the library that read or change what is there. Each checks its arguments first, then calls a presenter. */
export class Operator {
  protected readonly store: Store
  protected readonly settings: Settings

  constructor(store: Store, settings: Settings) {
    this.store = store
    this.settings = settings
  }

  protected get context(): OperatorContext {
    return contextFor(this.store, this.settings, `process ${process.pid} on ${hostname()}`)
  }

  readonly check: Unstuck['check'] = (source, options = {}) =>
    this.call('check()', { source: [source, SOURCE] }, options, FIELDS.age, async () => {
      const name = nameOf(source)
      checkSource(name)
      const age = parseDuration(options.abandonAfter) ?? undefined
      const advice = await adviseStart(this.context, name, age)
      return toJson(presentCheck(name, advice, await this.store.now()))
    })

  readonly enqueue: Unstuck['enqueue'] = (source, options = {}) =>
    this.call('enqueue()', { source: [source, SOURCE] }, options, FIELDS.enqueue, async () => {
      const { input = null } = options
      return runView(
        await sourceActions.enqueueSource(this.store, this.settings, nameOf(source), input),
      )
    })

  readonly status: Unstuck['status'] = (options = {}) =>
    this.call('status()', {}, options, ABORTABLE, async () =>
      toJson(presentOverview(await loadOverview(this.context))),
    )

  readonly summary: Unstuck['summary'] = (options = {}) =>
    this.call('summary()', {}, options, FIELDS.age, async () => {
      const age = parseDuration(options.abandonAfter) ?? undefined
      return toJson(await loadSummary(this.context, age))
    })

  readonly explain: Unstuck['explain'] = (what, options = {}) =>
    this.call('explain()', { id: [what, RUN] }, options, ABORTABLE, async () =>
      toJson(await presentExplanation(this.context, this.settings, await this.#runOrTarget(what))),
    )

  readonly run: Unstuck['run'] = (run, options = {}) =>
    this.call('run()', { run: [run, RUN] }, options, ABORTABLE, async () =>
      toJson(presentRun(await loadRunReport(this.context, await this.#run(run)))),
    )

  readonly runs: Unstuck['runs'] = (options = {}) =>
    this.#list('runs()', {}, options, FIELDS.runs, async (page) => {
      const { status = [], source, since } = options
      const statuses = [status].flat().flatMap((one) => (one === 'live' ? LIVE_STATUSES : [one]))
      return listRuns(this.context, {
        ...page,
        source: source === undefined ? undefined : nameOf(source),
        statuses: statuses.length > 0 ? [...new Set(statuses)] : undefined,
        createdSince: await this.#since(since),
      })
    })

  readonly targets: Unstuck['targets'] = (run, options = {}) =>
    this.#list('targets()', { run: [run, RUN] }, options, FIELDS.targets, async (page) => {
      const { status, group } = options
      const found = await this.#run(run)
      const list = await this.store.targets(found.id, {
        ...page,
        statuses: status === undefined ? undefined : [status].flat(),
        // The store takes an empty name for "no group".
        group: group === null ? '' : group,
      })
      return presentTargets(found, list).view
    })

  items<D = unknown>(
    source: Crawl<D> | SourceRef,
    options: ItemsOptions = {},
  ): Listing<records.Item<D>> {
    const args = { source: [source, SOURCE] } as const
    return this.#list('items()', args, options, FIELDS.items, async ({ after, limit }) => {
      const { run, group, since } = options
      const name = nameOf(source)
      if (after === undefined) await hasItems(this.store, name)
      const query = {
        source: name,
        run: run === undefined ? undefined : checkRunOfSource(await this.#run(run), name),
        // The store takes an empty name for "no group".
        group: group === null ? '' : group,
        since: await this.#since(since),
        after,
      }
      const { items, next } = await listItems(this.store, query, limit)
      return { items: items.map((item) => itemView(item) as records.Item<D>), next }
    })
  }

  readonly workers: Unstuck['workers'] = (options = {}) =>
    this.#list('workers()', {}, options, FIELDS.workers, async () => {
      const { source } = options
      const all = workerViews(await assess(this.context))
      const items = all.filter((one) => source === undefined || one.source === nameOf(source))
      return { items, next: null }
    })

  readonly history: Unstuck['history'] = (options = {}) =>
    this.#list('history()', {}, options, FIELDS.history, async ({ after, limit }) => {
      const { run, source, action, since } = options
      const filter = {
        action,
        source: source === undefined ? undefined : nameOf(source),
        run: run === undefined ? undefined : (await this.#run(run)).id,
        since: await this.#since(since),
      }
      const position = after === undefined ? undefined : Number(after)
      const history = await readHistory(this.store, filter, { after: position, limit })
      const { view } = presentHistory(history, await this.store.now())
      return { ...view, next: view.next === null ? null : String(view.next) }
    })

  readonly recover: Unstuck['recover'] = (options = {}) =>
    this.call('recover()', {}, options, FIELDS.recover, () =>
      recoverByPlan(this.context, { ...options, timeout: options.olderThan }),
    )

  readonly clean: Unstuck['clean'] = (runs, options = {}) => {
    const args: Arguments = runs === undefined ? {} : { runs: [runs, RUNS] }
    return this.call('clean()', args, options, FIELDS.clean, async () => {
      const named =
        runs === undefined
          ? undefined
          : await Promise.all([runs].flat().map((run) => this.#runToChange(run, 'clean')))
      return cleanByPlan(this.context, named, { ...options, age: options.abandonAfter })
    })
  }

  readonly pause = this.#sourceAction('pause', sourceActions.pause)
  readonly unpause = this.#sourceAction('unpause', sourceActions.unpause)
  readonly runNow = this.#sourceAction('runNow', sourceActions.runNow)
  readonly cancel = this.#runAction('cancel', runActions.cancel)
  readonly fail = this.#runAction('fail', runActions.fail)
  readonly resume = this.#runAction('resume', runActions.resume)
  readonly retry = this.#runAction('retry', runActions.retry)
  readonly revert = this.#runAction('revert', runActions.revert)

  readonly resetFailed: Unstuck['resetFailed'] = (run, options = {}) =>
    this.call('resetFailed()', { run: [run, RUN] }, options, FIELDS.resetFailed, async () => {
      const { groups, maxAttempts, dryRun = false } = options
      const found = await this.#runToChange(run, 'reset-failed')
      const targets = (await this.#targets(options.targets))?.map((target) => target.id)
      const request = { targets, groups, maxAttempts, dryRun }
      return actionResultView(await targetActions.resetFailed(this.context, [found], request))
    })

  readonly acknowledge: Unstuck['acknowledge'] = (what, options = {}) =>
    this.call('acknowledge()', { what: [what, RUNS] }, options, FIELDS.acknowledge, async () => {
      const { dryRun = false, undo = false, because, groups } = options
      const found = await Promise.all([what].flat().map((one) => this.#runOrTarget(one)))
      const isTarget = (one: Run | Target): one is Target => 'key' in one
      const runs = found.filter((one) => !isTarget(one)) as Run[]
      const selection = { runs, targets: found.filter(isTarget), groups }
      const request = { dryRun, undo, because }
      return actionResultView(await acknowledge(this.context, selection, request))
    })

  readonly park: Unstuck['park'] = (targets, options = {}) =>
    this.call('park()', { targets: [targets, TARGETS] }, options, FIELDS.reason, async () => {
      const { dryRun = false, because } = options
      const found = (await this.#targets([targets].flat()))!
      return actionResultView(await targetActions.park(this.context, found, { dryRun, because }))
    })

  readonly unpark: Unstuck['unpark'] = (run, options = {}) =>
    this.call('unpark()', { run: [run, RUN] }, options, FIELDS.unpark, async () => {
      const { groups, dryRun = false } = options
      const found = await this.#runToChange(run, 'unpark --run')
      const targets = await this.#targets(options.targets)
      const request = { targets, groups, dryRun }
      return actionResultView(await targetActions.unpark(this.context, [found], request))
    })

  readonly rewind: Unstuck['rewind'] = (target, options) =>
    this.call('rewind()', { target: [target, TARGET] }, options, FIELDS.rewind, async () => {
      const { dryRun = false, to, next, cursor } = options
      const found = await findTarget(this.store, idOf(target))
      const request = { dryRun, to, cursor, next: next === undefined ? next : String(next) }
      return actionResultView(await targetActions.rewind(this.context, found, request))
    })

  /** Checks all that a call was given, then does it until its signal fires. */
  protected async call<T>(
    name: string,
    args: Arguments,
    options: Abortable,
    fields: Fields,
    work: () => Promise<T>,
  ): Promise<T> {
    checkCall(name, options, fields, args)
    return options.signal ? abortable(options.signal, work) : work()
  }

  #runAction(
    verb: string,
    act: (
      context: OperatorContext,
      run: Run,
      request: runActions.ActionRequest,
    ) => Promise<ActionResult>,
  ): Unstuck['cancel'] {
    return (run, options = {}) =>
      this.call(`${verb}()`, { run: [run, RUN] }, options, FIELDS.reason, async () => {
        const { dryRun = false, because } = options
        const found = await this.#runToChange(run, verb)
        return actionResultView(await act(this.context, found, { dryRun, because }))
      })
  }

  #sourceAction(verb: string, act: typeof sourceActions.pause): Unstuck['pause'] {
    return (source, options = {}) =>
      this.call(`${verb}()`, { source: [source, SOURCE] }, options, FIELDS.reason, async () => {
        const { dryRun = false, because } = options
        return actionResultView(await act(this.context, nameOf(source), { dryRun, because }))
      })
  }

  #list<V, P extends Page<V>>(
    name: string,
    args: Arguments,
    options: ListOptions,
    fields: Fields,
    load: (page: { after: string | undefined; limit: number }) => Promise<P>,
  ): Listing<V, P> {
    return makeListing((after) =>
      this.call(name, args, options, fields, () =>
        load({ after: after ?? options.after, limit: options.limit ?? PAGE_SIZE }),
      ),
    )
  }

  async #run(ref: RunRef): Promise<Run> {
    if (typeof ref === 'string' || 'id' in ref) return findRun(this.store, idOf(ref))
    return findRunOfSource(this.store, ref.source)
  }

  async #runOrTarget(ref: RunRef | TargetRef): Promise<Run | Target> {
    if (typeof ref === 'object' && !('id' in ref)) return this.#run(ref)
    return findRunOrTarget(this.store, idOf(ref))
  }

  async #runToChange(ref: RunRef, verb: string): Promise<Run> {
    if (typeof ref === 'string' || 'id' in ref) return findRunToChange(this.store, idOf(ref), verb)
    return findRunOfSourceToChange(this.store, ref.source, verb)
  }

  async #targets(refs: readonly TargetRef[] | undefined): Promise<Target[] | undefined> {
    return refs && findTargets(this.store, refs.map(idOf))
  }

  async #since(since: Since | undefined): Promise<Millis | undefined> {
    if (since === undefined) return undefined
    const ageMs = parseDuration(since)
    if (ageMs !== null) return (await this.store.now()) - ageMs
    return new Date(since).getTime()
  }
}

function nameOf(ref: SourceRef): string {
  return typeof ref === 'string' ? ref : ref.source
}

function idOf(ref: string | { readonly id: string }): string {
  return typeof ref === 'string' ? ref : ref.id
}

/** Makes a list that reads a page when it is awaited, and page after page when it is iterated. */
export function makeListing<V, P extends Page<V> = Page<V>>(
  load: (after: string | undefined) => Promise<P>,
): Listing<V, P> {
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- `await` gives the first page.
    then: (onPage, onError) => load(undefined).then(onPage, onError),
    async *[Symbol.asyncIterator]() {
      for (let after: string | undefined; ;) {
        const { items, next } = await load(after)
        yield* items
        if (next === null) return
        after = next
      }
    },
  }
}
