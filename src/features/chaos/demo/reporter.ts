import type { WorkerId } from '../../../core/model/id.ts'
import type { Snapshot } from './snapshot.ts'

/** What was done to a worker; the database cannot know it. */
export type WorkerMark = 'killed' | 'stopped' | 'leaving'

/** Tells the story to whoever watches. */
export type Reporter = {
  /** Something that has happened. */
  log(sentence: string): void
  /** Something that is under way, what is waited for meanwhile, and what came of it in the end. */
  start(what: string, meanwhile: string): { end(outcome: string): void }
  mark(worker: WorkerId, mark: WorkerMark | null): void
  markAll(mark: WorkerMark): void
  /** How things stand, several times a second. */
  update(snapshot: Snapshot): void
  close(): Promise<void>
}

/** The figures that the headline shows, kept by the story. */
export type Headline = {
  readonly title: string
  /** Where it can be watched in a browser. */
  readonly dashboard: string
  readonly pages: number
  readonly startedAt: number
  /** What has been done to the workers so far, in a few words. */
  faultSummary(): string
}

/** `1:07` since the start. */
export function formatElapsed(startedAt: number): string {
  const seconds = Math.floor((performance.now() - startedAt) / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** 4210 as `4,210`. */
export function formatNumber(n: number): string {
  return n.toLocaleString('en-US')
}
