import type { Emit } from '../../../core/model/event.ts'
import type { WorkerId } from '../../../core/model/id.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { countTargets, type Run } from '../../../core/model/run.ts'
import type { TargetInput } from '../../../core/model/target.ts'
import type { Store } from '../../../core/store/store.ts'

export type PlanningOptions = {
  readonly store: Store
  readonly worker: WorkerId
  readonly run: Pick<Run, 'id' | 'source'>
  readonly emit: Emit
  readonly retry: <T>(call: () => Promise<T>) => Promise<T>
  /** New targets can be claimed. */
  readonly onPlanned: () => void
}

/** The planning of a run by its commands: one of them at a time is the planner, and any may add targets. */
export class Planning {
  readonly #options: PlanningOptions

  constructor(options: PlanningOptions) {
    this.#options = options
  }

  async describe(isStopping: boolean): Promise<Record<string, unknown>> {
    const { id: run, source } = this.#options.run
    const found = await this.#readRun()
    const planned = found !== null && found.plannedAt !== null
    return { run, source, planned, input: found?.input ?? null, stop: isStopping }
  }

  /** Returns true if this command is to plan the run. */
  claim(): Promise<boolean> {
    const { store, run, worker, retry } = this.#options
    return retry(() => store.claimPlanning(run.id, worker))
  }

  /** Adds targets. Returns how many were new; null if the run has ended. */
  async add(targets: readonly TargetInput[]): Promise<number | null> {
    const { store, run, retry, onPlanned } = this.#options
    try {
      const planned = await retry(() => store.plan(run.id, targets))
      if (planned > 0) onPlanned()
      return planned
    } catch (error) {
      const isLive = async (): Promise<boolean> =>
        (await retry(() => store.liveRun(run.source)))?.id === run.id
      if (error instanceof UsageError && !(await isLive())) return null
      throw error
    }
  }

  /** Marks all targets as added. Returns false if another command plans the run. */
  async finish(): Promise<boolean> {
    const { store, run, emit, retry } = this.#options
    const before = await this.#readRun()
    if (before === null || before.plannedAt !== null) return true
    if (!(await this.claim())) return false
    await retry(() => store.finishPlanning(run.id))
    const { counts } = (await this.#readRun()) ?? before
    emit({ type: 'run_planned', run: run.id, targets: countTargets(counts) })
    return true
  }

  #readRun(): Promise<Run | null> {
    const { store, run, retry } = this.#options
    return retry(() => store.run(run.id))
  }
}
