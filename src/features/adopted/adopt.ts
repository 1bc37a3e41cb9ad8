import { shortId, type Id, type RunId } from '../../core/model/id.ts'
import { Refused } from '../../core/model/errors.ts'
import type { Policy } from '../../core/model/policy.ts'
import { LIVE_STATUSES, type Run } from '../../core/model/run.ts'
import type { Judgement, Store } from '../../core/store/store.ts'
import { isAdoptedId } from './ids.ts'
import type { Desk } from './runs/intents.ts'
import type { Mapping } from './mapping.ts'
import { Resumption } from './runs/resume-hooks.ts'
import { lastFailedRows, listRuns } from './runs/run-lists.ts'
import { AdoptedRows } from './runs/rows.ts'
import { Settling } from './runs/intent-reconciler.ts'
import { replanRows, revertRows, setRowsAside } from './runs/operator-actions.ts'
import { countsByGroup, countsByPage, listDeadLetters, listTargets } from './runs/target-lists.ts'
import { runTotals, targetTotals } from './runs/totals.ts'
import { applyToRows, cancelRow, moveRow } from './runs/verdicts.ts'

export type AdoptOptions = {
  /** Where Unstuck's own database is: tables that name no other are there. */
  readonly address: string
  /** Hears what went wrong in a function of the user's, a line each. */
  readonly log?: (line: string) => void
  /** What counts for a run now; left out: what its table says. */
  readonly policyOf?: (run: Run) => Policy
}

/**
 * A store in which the rows of these tables are runs (or targets) like our own, so that every door works on them. What
 * is done to them is in the own store's trail. With no tables: the store itself.
 */
export function adopt(store: Store, mappings: readonly Mapping[], options: AdoptOptions): Store {
  if (mappings.length === 0) return store
  const log = options.log ?? (() => {})
  const resumption = new Resumption(log)
  const rows = new AdoptedRows(store, mappings, {
    address: options.address,
    log,
    policyOf: options.policyOf,
  })
  const desk: Desk = { store, rows, resumption }
  const settling = new Settling(desk)
  return {
    ...store,
    get remarks() {
      return [...store.remarks, ...rows.tables.remarks]
    },
    get away() {
      return rows.tables.away
    },
    ...runVerbs(store, rows),
    ...targetVerbs(store, rows),
    ...workerVerbs(store, rows),

    async applyJudgements(judgements, actor) {
      const isOwn = ({ held }: Judgement): boolean => held.run.adopted === undefined
      const own = judgements.filter(isOwn)
      const theirs = judgements.filter((one) => !isOwn(one))
      const done = new Map<Judgement, boolean>()
      const note = (all: readonly Judgement[], applied: readonly boolean[]): void => {
        for (const [at, one] of all.entries()) done.set(one, applied[at] ?? false)
      }
      if (own.length > 0) note(own, await store.applyJudgements(own, actor))
      if (theirs.length > 0) {
        await settling.lately()
        note(theirs, await applyToRows(desk, theirs, actor))
      }
      return judgements.map((one) => done.get(one) ?? false)
    },
    async moveRun(move) {
      if (!isAdoptedId(move.run)) return store.moveRun(move)
      await settling.lately()
      return move.to === 'cancelled' ? cancelRow(desk, move) : moveRow(desk, move)
    },
    async settle(run, lost) {
      if (run !== undefined && isAdoptedId(run)) {
        await settling.lately()
        return []
      }
      if (run !== undefined) return store.settle(run, lost)
      await settling.now()
      const moved = [...rows.moved]
      rows.moved.clear()
      if (moved.length > 0) await store.forgetReopening(moved)
      return store.settle(run, lost)
    },

    async replan(request) {
      if (!isAdoptedId(request.run)) return store.replan(request)
      if (!request.dryRun) await settling.lately()
      return replanRows(desk, request)
    },
    async revert(revert) {
      if (!isAdoptedId(revert.run)) return store.revert(revert)
      await settling.lately()
      return revertRows(desk, revert)
    },
    async setAside({ targets, actor, because }) {
      const theirs = targets.filter(isAdoptedId)
      const own = targets.filter((id) => !isAdoptedId(id))
      const deed = { actor, because }
      if (theirs.length > 0) await settling.lately()
      return [
        ...(own.length > 0 ? await store.setAside({ targets: own, ...deed }) : []),
        ...(await setRowsAside(desk, theirs, deed)),
      ]
    },
    retryRun: async (request) =>
      isAdoptedId(request.run) ? refuse(request.run, 'retried') : store.retryRun(request),
    rewind: async (request) =>
      isAdoptedId(request.target) ? refuse(request.target, 'rewound') : store.rewind(request),
    deleteRun: async (request) =>
      isAdoptedId(request.run) ? refuse(request.run, 'deleted') : store.deleteRun(request),

    async close() {
      await resumption.finish()
      await rows.tables.close()
      await store.close()
    },
  }
}

/** Nothing is added to the user's tables or taken from them. */
function refuse(id: Id, what: string): never {
  throw new Refused(`${shortId(id)} is in a table of your own: it cannot be ${what}.`)
}

type RunVerbs = Pick<
  Store,
  'liveRun' | 'run' | 'runs' | 'runsEnding' | 'liveRuns' | 'lastFailed' | 'runTotals' | 'executions'
>

function runVerbs(store: Store, rows: AdoptedRows): RunVerbs {
  return {
    run: async (id) => (isAdoptedId(id) ? rows.run(id) : store.run(id)),
    runs: (filter) => listRuns(store, rows, filter),
    async runsEnding(suffix) {
      return endingIn(rows, suffix, 'run', await store.runsEnding(suffix))
    },
    async liveRun(source) {
      const own = await store.liveRun(source)
      if (own) return own
      const { items } = await listRuns(store, rows, { source, statuses: LIVE_STATUSES, limit: 1 })
      return items[0] ?? null
    },
    async liveRuns() {
      const [own, { runs, wholes }] = await Promise.all([store.liveRuns(), rows.look()])
      return [
        ...own,
        ...runs.map(({ run, target }) => ({ run, target })),
        ...wholes
          .filter(({ run }) => LIVE_STATUSES.some((status) => status === run.status))
          .map(({ run }) => ({ run, target: null })),
      ].sort((a, b) => b.run.createdAt - a.run.createdAt)
    },
    async lastFailed() {
      const failed = [...(await store.lastFailed()), ...(await lastFailedRows(rows))]
      return failed.sort((a, b) => b.createdAt - a.createdAt)
    },
    runTotals: () => runTotals(store, rows),
    executions: async (run: RunId, limit) => (isAdoptedId(run) ? [] : store.executions(run, limit)),
  }
}

/** Our own, and those of the tables. What is found nowhere may be in one that is away. */
async function endingIn(
  rows: AdoptedRows,
  suffix: string,
  part: 'run' | 'target',
  own: readonly Id[],
): Promise<Id[]> {
  const all = [...own, ...(await rows.where.ending(suffix, part))]
  if (all.length === 0) rows.tables.refuseIfAway()
  return all
}

type TargetVerbs = Pick<
  Store,
  | 'target'
  | 'targets'
  | 'targetsEnding'
  | 'countsByGroup'
  | 'countsByPage'
  | 'targetTotals'
  | 'deadLetters'
>

function targetVerbs(store: Store, rows: AdoptedRows): TargetVerbs {
  return {
    async target(id) {
      if (!isAdoptedId(id)) return store.target(id)
      const seen = await rows.seeId(id)
      return seen?.target.id === id ? seen.target : null
    },
    targets: async (run, filter) =>
      isAdoptedId(run) ? listTargets(rows, run, filter) : store.targets(run, filter),
    async targetsEnding(suffix) {
      return endingIn(rows, suffix, 'target', await store.targetsEnding(suffix))
    },
    countsByGroup: async (run) =>
      isAdoptedId(run) ? countsByGroup(rows, run) : store.countsByGroup(run),
    countsByPage: async (run) =>
      isAdoptedId(run) ? countsByPage(rows, run) : store.countsByPage(run),
    targetTotals: () => targetTotals(store, rows),
    deadLetters: (filter) => listDeadLetters(store, rows, filter),
  }
}

type WorkerVerbs = Pick<Store, 'workers' | 'worker' | 'retire' | 'heldBy' | 'holdings'>

function workerVerbs(store: Store, rows: AdoptedRows): WorkerVerbs {
  const held = async () => [...(await rows.look()).held.values()]
  return {
    async workers() {
      const [own, theirs] = await Promise.all([store.workers(), held()])
      return [...own, ...theirs.map(({ witnessed, run }) => ({ ...witnessed!, run: run.id }))]
    },
    async worker(id) {
      if (!isAdoptedId(id)) return store.worker(id)
      return (await rows.seeId(id))?.witnessed?.worker ?? null
    },
    // Nothing of theirs is ours to end.
    retire: async (id) => (isAdoptedId(id) ? undefined : store.retire(id)),
    async heldBy(worker, after, limit) {
      if (!isAdoptedId(worker)) return store.heldBy(worker, after, limit)
      const seen = after === null ? await rows.heldBy(worker) : null
      if (!seen) return []
      const { table, row, target, run } = seen
      const ref = { table: table.mapping.name, key: row.key }
      return [{ target, run, workerBeats: 0, row: ref }]
    },
    async holdings() {
      const [own, theirs] = await Promise.all([store.holdings(), held()])
      return [
        ...own,
        ...theirs.map(({ run, target, witnessed }) => ({
          worker: witnessed!.worker.id,
          group: target.group,
          policy: run.policy,
          targets: 1,
          lastActivityAt: target.lastActivityAt,
        })),
      ]
    },
  }
}
