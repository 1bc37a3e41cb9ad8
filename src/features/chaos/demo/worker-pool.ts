import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { EXIT } from '../../../core/model/exit-codes.ts'
import type { RunId, WorkerId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Worker } from '../../../core/model/worker.ts'
import { processState } from '../../../core/host/identity.ts'
import type { Store } from '../../../core/store/store.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { ProcessRun } from '../process-run.ts'

export type WorkerPoolOptions = {
  readonly workers: number
  readonly db: string
  readonly journal: string
  /** Receives the output of the workers. */
  readonly logPath: string
  /** How often `unstuck work` itself may be killed. */
  readonly maxRestarts: number
  readonly env: Readonly<Record<string, string>>
}

const STOP_TIMEOUT_MS = 8_000
const BIN = fileURLToPath(new URL('../../../../bin/unstuck.js', import.meta.url))

/**
 * `unstuck work`, as a user would start it, with its worker processes. It has a channel to the demo: if the demo is
 * killed, the workers release their targets and end.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  #run: ProcessRun | null = null
  #deploying: PromiseWithResolvers<{ finished: boolean }> | null = null
  #isStopping = false
  /** Set when the run exists: from then on no other may be started. */
  hasRun = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  /** Works until no target is left, or until `stop`. Returns the exit code of the last `unstuck work`. */
  async run(): Promise<number> {
    for (let restarts = 0; ;) {
      const { code } = await this.#runOnce()
      const deploying = this.#deploying
      this.#deploying = null
      deploying?.resolve({ finished: code === EXIT.done })
      if (code === EXIT.done || this.#isStopping) return code ?? EXIT.failed
      if (deploying) continue
      // Killed or stopped from outside; or by the demo, if there is a single worker. Other exits would repeat.
      const isRestartable = code === null || code === EXIT.resumable
      if (!isRestartable || ++restarts > this.#options.maxRestarts) return code ?? EXIT.failed
    }
  }

  /** Sends SIGTERM, as a deploy does; `run` starts the workers again. Resolves when all have ended. */
  deploy(): Promise<{ finished: boolean }> {
    this.#deploying ??= Promise.withResolvers()
    this.#terminate()
    return this.#deploying.promise
  }

  /** Lets workers finish their pages; kills those that take too long. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const run = this.#run
    if (!run) return
    this.#terminate()
    await Promise.race([run.exited, REAL_CLOCK.sleep(STOP_TIMEOUT_MS, run.exitSignal)])
    await run.kill()
  }

  /** Kills every process without waiting. */
  kill(): void {
    this.#isStopping = true
    this.#run?.killNow()
  }

  #terminate(): void {
    this.#run?.signal('SIGTERM', this.#run.selectProcesses('command', 0))
  }

  async #runOnce(): Promise<{ code: number | null }> {
    const { workers, db, journal, logPath, env } = this.#options
    const args = ['work', crawlModule(), '--workers', String(workers), '--drain', '--db', db]
    args.push('--journal', journal)
    const run = await ProcessRun.start({
      command: [process.execPath, BIN, ...args, ...(this.hasRun ? ['--no-start'] : [])],
      env,
      logPath,
      hasChannel: true,
    })
    this.#run = run
    return run.exited
  }
}

function crawlModule(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fileURLToPath(new URL(`./crawl.${extension}`, import.meta.url))
}

/** The state of the run at one moment. */
export type Snapshot = {
  readonly run: Run
  /** Live workers of this run's source. */
  readonly workers: readonly Worker[]
  readonly held: ReadonlyMap<WorkerId, Target>
}

export async function takeSnapshot(store: Store, run: RunId, source: string): Promise<Snapshot> {
  const found = await store.run(run)
  if (!found) throw new Error(`Run ${run} is no longer in the database.`)
  const [observed, inProgress] = await Promise.all([
    store.observations(),
    store.targets(run, { statuses: ['in_progress'], limit: 1_000 }),
  ])
  return {
    run: found,
    workers: observed
      .map(({ worker }) => worker)
      .filter((worker) => worker.source === source && processState(worker.process) !== 'gone'),
    held: new Map(inProgress.items.map((target) => [target.worker!, target])),
  }
}
