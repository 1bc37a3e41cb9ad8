import { shortId, type Id } from '../../core/model/id.ts'
import { RefusedError } from '../../core/model/errors.ts'
import type { Policy } from '../../core/model/policy.ts'
import { LIVE_STATUSES, type Run } from '../../core/model/run.ts'
import type { PendingVerdict, Store } from '../../core/store/store.ts'
import { isAdoptedId } from './ids.ts'
import { ADOPTED_STORE } from './store/store.ts'
import type { AdoptedContext } from './runs/intents.ts'
import type { Mapping } from './mapping.ts'
import { ResumeHooks } from './runs/callbacks.ts'
import { latestFailedRuns, listRuns } from './runs/run-lists.ts'
import { AdoptedRows } from './runs/rows.ts'
import { IntentReconciler } from './runs/intent-reconciler.ts'
import { replanRows, revertRows, parkRows } from './runs/operator-actions.ts'
import {
  countsByGroup,
  countsByPage,
  listDeadLetters,
  listTargets,
  runTotals,
  targetTotals,
} from './runs/target-lists.ts'
import { applyVerdictsToRows, moveRow } from './runs/verdicts.ts'

export type AdoptedStoreOptions = {
  /** Unstuck's own database, which tables without a `db` are in. */
  readonly address: string
  /** Receives a line for each error of a user's function. */
  readonly log?: (line: string) => void
  /** The policy of a run; default: the policy of its table. */
  readonly policyOf?: (run: Run) => Policy
}

/**
 * Wraps a store so that the rows of these tables appear as runs (or targets) in every interface. What is done to them is
 * in the store's own audit trail. Without tables it returns the store itself.
 */
export async function withAdoptedTables(
  store: Store,
  mappings: readonly Mapping[],
  options: AdoptedStoreOptions,
): Promise<Store> {
  if (mappings.length === 0) return store
  const log = options.log ?? (() => {})
  const resumeHooks = new ResumeHooks(log)
  const adopted = await store.extend(ADOPTED_STORE)
  const rows = new AdoptedRows(store, adopted, mappings, {
    address: options.address,
    log,
    policyOf: options.policyOf,
  })
  const context: AdoptedContext = { store, adopted, rows, resumeHooks }
  const reconciler = new IntentReconciler(context)
  return {
    ...store,
    get warnings() {
      return [...store.warnings, ...rows.tables.warnings]
    },
    get unreadable() {
      return rows.tables.unreadable
    },
    ...runMethods(store, rows),
    ...targetMethods(store, rows),
    ...workerMethods(store, rows),

    async applyVerdicts(verdicts, actor) {
      const isOwn = ({ held }: PendingVerdict): boolean => held.run.traits.origin === null
      const own = verdicts.filter(isOwn)
      const theirs = verdicts.filter((one) => !isOwn(one))
      const done = new Map<PendingVerdict, boolean>()
      const record = (all: readonly PendingVerdict[], applied: readonly boolean[]): void => {
        for (const [at, one] of all.entries()) done.set(one, applied[at] ?? false)
      }
      if (own.length > 0) record(own, await store.applyVerdicts(own, actor))
      if (theirs.length > 0) {
        await reconciler.reconcileIfDue()
        record(theirs, await applyVerdictsToRows(context, theirs, actor))
      }
      return verdicts.map((one) => done.get(one) ?? false)
    },
    async moveRun(move) {
      if (!isAdoptedId(move.run)) return store.moveRun(move)
      await reconciler.reconcileIfDue()
      return moveRow(context, move)
    },
    async settle(run, lost) {
      if (run !== undefined && isAdoptedId(run)) {
        await reconciler.reconcileIfDue()
        return []
      }
      if (run !== undefined) return store.settle(run, lost)
      await reconciler.reconcile()
      const moved = [...rows.moved]
      rows.moved.clear()
      if (moved.length > 0) await adopted.forgetReopening(moved)
      return store.settle(run, lost)
    },

    async replan(request) {
      if (!isAdoptedId(request.run)) return store.replan(request)
      if (!request.dryRun) await reconciler.reconcileIfDue()
      return replanRows(context, request)
    },
    async revert(revert) {
      if (!isAdoptedId(revert.run)) return store.revert(revert)
      await reconciler.reconcileIfDue()
      return revertRows(context, revert)
    },
    async parkTargets({ targets, actor, because }) {
      const theirs = targets.filter(isAdoptedId)
      const own = targets.filter((id) => !isAdoptedId(id))
      const operation = { actor, because }
      if (theirs.length > 0) await reconciler.reconcileIfDue()
      return [
        ...(own.length > 0 ? await store.parkTargets({ targets: own, ...operation }) : []),
        ...(await parkRows(context, theirs, operation)),
      ]
    },
    retryRun: async (request) =>
      isAdoptedId(request.run) ? refuse(request.run, 'retried') : store.retryRun(request),
    rewind: async (request) =>
      isAdoptedId(request.target) ? refuse(request.target, 'rewound') : store.rewind(request),
    deleteRun: async (request) =>
      isAdoptedId(request.run) ? refuse(request.run, 'deleted') : store.deleteRun(request),

    async close() {
      await resumeHooks.drain()
      await rows.tables.close()
      await store.close()
    },
  }
}

/** Rows are never added to a user's table or deleted. */
function refuse(id: Id, what: string): never {
  throw new RefusedError(`${shortId(id)} is in an adopted table: it cannot be ${what}.`)
}

type RunMethods = Pick<Store, 'liveRun' | 'run' | 'runs' | 'idsEnding' | 'liveRuns' | 'runTotals'>

function runMethods(store: Store, rows: AdoptedRows): RunMethods {
  return {
    run: async (id) => (isAdoptedId(id) ? rows.run(id) : store.run(id)),
    async runs(filter) {
      if (!filter.latestFailed) return listRuns(store, rows, filter)
      const failed = [...(await store.runs(filter)).items, ...(await latestFailedRuns(rows))]
      return { items: failed.sort((a, b) => b.createdAt - a.createdAt), next: null }
    },
    async idsEnding(suffix, kind) {
      const own = await store.idsEnding(suffix, kind)
      const all = [...own, ...(await rows.locator.idsEnding(suffix, kind))]
      // An id that is not found may be in a table that cannot be read now.
      if (all.length === 0) rows.tables.throwIfUnreadable()
      return all
    },
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
    runTotals: () => runTotals(store, rows),
  }
}

type TargetMethods = Pick<
  Store,
  'target' | 'targets' | 'countsByGroup' | 'countsByPage' | 'targetTotals' | 'deadLetters'
>

function targetMethods(store: Store, rows: AdoptedRows): TargetMethods {
  return {
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
    targetTotals: () => targetTotals(store, rows),
    deadLetters: (filter) => listDeadLetters(store, rows, filter),
  }
}

type WorkerMethods = Pick<
  Store,
  'observations' | 'worker' | 'retireWorker' | 'claimsOf' | 'holdings'
>

function workerMethods(store: Store, rows: AdoptedRows): WorkerMethods {
  const claimedRows = async () => [...(await rows.loadLive()).byWorker.values()]
  return {
    async observations() {
      const [own, theirs] = await Promise.all([store.observations(), claimedRows()])
      return [...own, ...theirs.map(({ observation, run }) => ({ ...observation!, run: run.id }))]
    },
    async worker(id) {
      if (!isAdoptedId(id)) return store.worker(id)
      return (await rows.resolveId(id))?.observation?.worker ?? null
    },
    // The user's own workers are not retired here.
    retireWorker: async (id) => (isAdoptedId(id) ? undefined : store.retireWorker(id)),
    async claimsOf(worker, after, limit) {
      if (!isAdoptedId(worker)) return store.claimsOf(worker, after, limit)
      const resolved = after === null ? await rows.claimOf(worker) : null
      if (!resolved) return []
      const { table, row, target, run } = resolved
      const ref = { table: table.mapping.name, key: row.key }
      return [{ target, run, workerHeartbeats: 0, row: ref }]
    },
    async holdings() {
      const [own, theirs] = await Promise.all([store.holdings(), claimedRows()])
      return [
        ...own,
        ...theirs.map(({ run, target, observation }) => ({
          worker: observation!.worker.id,
          run: run.id,
          group: target.group,
          policy: run.policy,
          targets: 1,
          lastActivityAt: target.lastActivityAt,
        })),
      ]
    },
  }
}
