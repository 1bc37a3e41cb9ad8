import type { Clock } from '../host/clock.ts'
import type { LeaderRole } from '../store/store.ts'

/** Something a process does again and again, beside its work. */
export type Job = {
  readonly name: string
  /**
   * Milliseconds from one start to the next; a late run is not made up for. A function returns the pause before the next
   * run instead, from the wall clock.
   */
  readonly every: number | ((wallMs: number) => number)
  /** Milliseconds before the first run; the same as `every` if left out. */
  readonly after?: number
  /** Only the process that leads runs the job. The leadership lasts so long after each run. */
  readonly leader?: { readonly role: LeaderRole; readonly forMs: number }
  /** Skips a run while it returns false. */
  isReady?(): boolean
  run(): Promise<void>
}

export type JobHost = {
  readonly clock: Clock
  /** Returns whether this process leads. */
  acquireLeadership(role: LeaderRole, forMs: number): Promise<boolean>
  onError(job: Job, error: unknown): void
}

/** Runs the jobs side by side until the signal fires. Resolves when the runs that were in progress have ended. */
export async function runJobs(
  jobs: readonly Job[],
  host: JobHost,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(jobs.map((job) => repeat(job, host, signal)))
}

/** Runs a job once, if it is ready and this process leads. */
export async function runJob(job: Job, host: JobHost): Promise<void> {
  const { leader } = job
  try {
    if (job.isReady?.() === false) return
    if (leader && !(await host.acquireLeadership(leader.role, leader.forMs))) return
    await job.run()
  } catch (error) {
    host.onError(job, error)
  }
}

async function repeat(job: Job, host: JobHost, signal: AbortSignal): Promise<void> {
  const { every } = job
  const { clock } = host
  const pause = (): number => (typeof every === 'number' ? every : every(clock.wallNow()))
  let next = clock.now() + (job.after ?? pause())
  for (;;) {
    await clock.sleep(next - clock.now(), signal)
    if (signal.aborted) return
    await runJob(job, host)
    const from = typeof every === 'number' ? next : clock.now()
    next = Math.max(from + pause(), clock.now())
  }
}
