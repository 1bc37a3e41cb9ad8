/** Something that saves pages as fast as it can. What it needs is made before the clock is started. */
export type Contender = {
  /** Works until the moment (in milliseconds since 1970) and answers how many pages it saved. */
  run(until: number): Promise<number>
  close(): Promise<void>
}

export type Prepare = (db: string, concurrency: number) => Promise<Contender>

const WARM_UP_MS = 1_000

/** The same after a while of work: a crawl runs for hours, and code that has just been loaded is slow. */
export function withWarmUp(prepare: Prepare): Prepare {
  return async (db, atOnce) => {
    const contender = await prepare(db, atOnce)
    await contender.run(Date.now() + WARM_UP_MS)
    return contender
  }
}
