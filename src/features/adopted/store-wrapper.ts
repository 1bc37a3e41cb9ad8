import type { StoreHost } from '../../contracts/feature.ts'
import { RefusedError } from '../../core/model/errors.ts'
import { isIdEnding, shortId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { LIVE_STATUSES, type Run } from '../../core/model/run.ts'
import type {
  HeldTarget,
  Holding,
  PendingVerdict,
  Store,
  StoreExtension,
} from '../../core/store/store.ts'
import { ACKNOWLEDGE_STORE, type AcknowledgeStore } from '../acknowledge/store/store.ts'
import { ADOPTED_SECTION } from './config.ts'
import { isAdoptedId } from './ids.ts'
import type { Mapping } from './mapping.ts'
import { acknowledgeMethods } from './runs/acknowledge.ts'
import { ResumeHooks } from './runs/callbacks.ts'
import { IntentReconciler } from './runs/intent-reconciler.ts'
import type { AdoptedContext } from './runs/intents.ts'
import { deleteRow, parkRows, replanRows, revertRows } from './runs/operator-actions.ts'
import type { ResolvedRow } from './runs/row-run.ts'
import { AdoptedRows } from './runs/rows.ts'
import { listRuns } from './runs/run-lists.ts'
import {
  countsByGroup,
  countsByPage,
  listDeadLetters,
  listTargets,
  runTotals,
  targetTotals,
} from './runs/target-lists.ts'
import { applyVerdictsToRows, moveRow } from './runs/verdicts.ts'
import { ADOPTED_STORE } from './store/store.ts'

/** Adds the rows of the config's tables to a store. */
export function wrapStore(store: Store, { settings, address, log }: StoreHost): Promise<Store> {
  const { policyOf } = settings
  return withAdoptedTables(store, settings.section(ADOPTED_SECTION), { address, log, policyOf })
}

export type AdoptedTablesOptions = {
  /** Unstuck's own database, which tables without a `db` are in. */
  readonly address: string
  /** Receives a line for each error of a user's function. */
  readonly log?: (line: string) => void
  /** The policy of a run; default: the policy of its table. */
  readonly policyOf?: (run: Run) => Policy
}

/**
 * Wraps a store so that the rows of these tables appear as runs (or targets) in every interface. Lists and totals combine
 * the store and the tables; a call about one run, target or worker goes to the tables if its id is a row's; every other
 * method is the store's own. What is done to rows is in the store's audit trail. Without tables it returns the store
 * itself.
 */
export async function withAdoptedTables(
  store: Store,
  mappings: readonly Mapping[],
  options: AdoptedTablesOptions,
): Promise<Store> {
  if (mappings.length === 0) return store
  const log = options.log ?? (() => {})
  const resumeHooks = new ResumeHooks(log)
  const adopted = await store.extend(ADOPTED_STORE)
  const rows = new AdoptedRows(store, adopted, mappings, { ...options, log })
  const context: AdoptedContext = { store, adopted, rows, resumeHooks }
  const reconciler = new IntentReconciler(context)
  return {
    ...store,
    ...combined(store, rows),
    ...routedById(store, rows),
    ...changes(context, reconciler),
    ...refused(store),
    extend: (extension) => extendWithRows(context, extension),
    get warnings() {
      return [...store.warnings, ...rows.tables.warnings]
    },
    get unreadable() {
      return rows.tables.unreadable
    },
    async settle(run, ownerLost) {
      if (run !== undefined && isAdoptedId(run)) {
        await reconciler.reconcileIfDue()
        return []
      }
      if (run === undefined) {
        await reconciler.reconcile()
        await rows.forgetReopeningOfMoved()
      }
      return store.settle(run, ownerLost)
    },
    async close() {
      await resumeHooks.drain()
      await rows.tables.close()
      await store.close()
    },
  }
}

/** Extends the store, and applies acknowledgements to rows too. */
async function extendWithRows<T extends object>(
  context: AdoptedContext,
  extension: StoreExtension<T>,
): Promise<T> {
  const own = await context.store.extend(extension)
  // Each extension is one object, so this is the store of acknowledgements.
  const isMarks = (extension as object) === ACKNOWLEDGE_STORE
  return isMarks ? (acknowledgeMethods(context, own as unknown as AcknowledgeStore) as T) : own
}

type Combined = Pick<
  Store,
  | 'runs'
  | 'liveRun'
  | 'liveRuns'
  | 'idsEnding'
  | 'runTotals'
  | 'targetTotals'
  | 'deadLetters'
  | 'observations'
  | 'holdings'
>

/** Combines the lists and totals of the store with those of all tables. */
function combined(store: Store, rows: AdoptedRows): Combined {
  const claimedRows = async () => [...(await rows.loadLive()).byWorker.values()]
  const isUnacknowledged = ({ target }: ResolvedRow) => target.acknowledgedAt === null
  return {
    runs: (filter) => listRuns(store, rows, filter),
    runTotals: () => runTotals(store, rows),
    targetTotals: () => targetTotals(store, rows),
    deadLetters: (filter) => listDeadLetters(store, rows, filter),
    async liveRun(source) {
      const own = await store.liveRun(source)
      if (own) return own
      const { items } = await listRuns(store, rows, { source, statuses: LIVE_STATUSES, limit: 1 })
      return items[0] ?? null
    },
    async liveRuns() {
      const [own, { runs, tableRuns }] = await Promise.all([store.liveRuns(), rows.loadLive()])
      return [
        ...own,
        ...runs.map(({ run, target }) => ({ run, target })),
        ...tableRuns
          .filter(({ run }) => LIVE_STATUSES.some((status) => status === run.status))
          .map(({ run }) => ({ run, target: null })),
      ].sort((a, b) => b.run.createdAt - a.run.createdAt)
    },
    async idsEnding(text, kind) {
      const isEnding = isIdEnding(text)
      const lists = await Promise.all([
        store.idsEnding(text, kind),
        isEnding ? rows.locator.idsEnding(text.toLowerCase(), kind) : [],
        rows.locator.idsOfKey(text, kind),
      ])
      const all = [...new Set(lists.flat())]
      // An id that is not found may be in a table that cannot be read now.
      if (all.length === 0 && isEnding) rows.tables.throwIfUnreadable()
      return all
    },
    async observations() {
      const [own, theirs] = await Promise.all([store.observations(), claimedRows()])
      return [...own, ...theirs.map(({ observation, run }) => ({ ...observation!, run: run.id }))]
    },
    async holdings() {
      const [own, theirs] = await Promise.all([store.holdings(), claimedRows()])
      return [...own, ...theirs.filter(isUnacknowledged).map(toHolding)]
    },
  }
}

type RoutedById = Pick<
  Store,
  | 'run'
  | 'target'
  | 'targets'
  | 'countsByGroup'
  | 'countsByPage'
  | 'worker'
  | 'retireWorker'
  | 'claimsOf'
>

/** Sends a call about one run, target or worker to the tables if its id is that of a row, else to the store. */
function routedById(store: Store, rows: AdoptedRows): RoutedById {
  return {
    run: async (id) => (isAdoptedId(id) ? rows.run(id) : store.run(id)),
    async target(id) {
      if (!isAdoptedId(id)) return store.target(id)
      const resolved = await rows.resolveId(id)
      return resolved?.target.id === id ? resolved.target : null
    },
    targets: async (run, filter) =>
      isAdoptedId(run) ? listTargets(rows, run, filter) : store.targets(run, filter),
    countsByGroup: async (run) =>
      isAdoptedId(run) ? countsByGroup(rows, run) : store.countsByGroup(run),
    countsByPage: async (run) =>
      isAdoptedId(run) ? countsByPage(rows, run) : store.countsByPage(run),
    async worker(id) {
      if (!isAdoptedId(id)) return store.worker(id)
      return (await rows.resolveId(id))?.observation?.worker ?? null
    },
    // The user's own workers are not retired here.
    retireWorker: async (id) => (isAdoptedId(id) ? undefined : store.retireWorker(id)),
    async claimsOf(worker, after, limit) {
      if (!isAdoptedId(worker)) return store.claimsOf(worker, after, limit)
      const resolved = after === null ? await rows.claimOf(worker) : null
      // Recovery leaves alone what an operator acknowledged.
      return resolved?.target.acknowledgedAt === null ? [toHeldTarget(resolved)] : []
    },
  }
}

type Changes = Pick<
  Store,
  'applyVerdicts' | 'moveRun' | 'replan' | 'retryRun' | 'revert' | 'parkTargets' | 'deleteRun'
>

/** Changes runs and targets. Before it changes a row, it concludes the operations that dead processes left open. */
function changes(context: AdoptedContext, reconciler: IntentReconciler): Changes {
  const { store } = context
  return {
    async moveRun(move) {
      if (!isAdoptedId(move.run)) return store.moveRun(move)
      await reconciler.reconcileIfDue()
      return moveRow(context, move)
    },
    async replan(request) {
      if (!isAdoptedId(request.run)) return store.replan(request)
      if (!request.dryRun) await reconciler.reconcileIfDue()
      return replanRows(context, request)
    },
    async retryRun({ run, actor, because, ...request }) {
      if (!isAdoptedId(run)) return store.retryRun({ run, actor, because, ...request })
      await reconciler.reconcileIfDue()
      const selection = { statuses: [], reopen: true, dryRun: false } as const
      await replanRows(context, { run, actor, because, action: 'retry', ...selection })
    },
    async revert(request) {
      if (!isAdoptedId(request.run)) return store.revert(request)
      await reconciler.reconcileIfDue()
      return revertRows(context, request)
    },
    async deleteRun({ run, actor, because, ...request }) {
      if (!isAdoptedId(run)) return store.deleteRun({ run, actor, because, ...request })
      await reconciler.reconcileIfDue()
      return deleteRow(context, { run, actor, because })
    },
    async applyVerdicts(verdicts, actor) {
      const isOwn = ({ held }: PendingVerdict): boolean => held.run.traits.origin === null
      const own = verdicts.filter(isOwn)
      const theirs = verdicts.filter((one) => !isOwn(one))
      const ownApplied = own.length > 0 ? await store.applyVerdicts(own, actor) : []
      if (theirs.length > 0) await reconciler.reconcileIfDue()
      const theirsApplied = await applyVerdictsToRows(context, theirs, actor)
      const [nextOwn, nextOfTheirs] = [ownApplied.values(), theirsApplied.values()]
      return verdicts.map((one) => (isOwn(one) ? nextOwn : nextOfTheirs).next().value ?? false)
    },
    async parkTargets({ targets, ...operation }) {
      const own = targets.filter((id) => !isAdoptedId(id))
      const theirs = targets.filter(isAdoptedId)
      if (theirs.length > 0) await reconciler.reconcileIfDue()
      return [
        ...(own.length > 0 ? await store.parkTargets({ targets: own, ...operation }) : []),
        ...(await parkRows(context, theirs, operation)),
      ]
    },
  }
}

/** Refuses to rewind a row: the user's own columns hold its progress. */
function refused(store: Store): Pick<Store, 'rewind'> {
  return {
    async rewind(request) {
      if (!isAdoptedId(request.target)) return store.rewind(request)
      const id = shortId(request.target)
      throw new RefusedError(`${id} is in an adopted table: it cannot be rewound.`)
    },
  }
}

function toHeldTarget({ table, row, target, run }: ResolvedRow): HeldTarget {
  return { target, run, workerHeartbeats: 0, row: { table: table.mapping.name, key: row.key } }
}

function toHolding({ run, target, observation }: ResolvedRow): Holding {
  return {
    worker: observation!.worker.id,
    run: run.id,
    group: target.group,
    policy: run.policy,
    targets: 1,
    lastActivityAt: target.lastActivityAt,
  }
}
