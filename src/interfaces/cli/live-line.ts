import { shortId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { humanizeAgo, type Millis } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { barOf, formatDoneOfTotal, howFar } from '../../presenters/format.ts'
import type { Output } from '../../contracts/command.ts'

const REDRAW_MS = 500
const PLAIN_EVERY_MS = 10_000

/**
 * How far the work is: one line redrawn in place on a terminal, a plain line every ten seconds elsewhere. Log lines
 * go through it, so that they do not tear it.
 */
export class LiveLine {
  readonly #source: string
  readonly #output: Output
  readonly #terminal: boolean
  readonly #prefix: string
  #timer: NodeJS.Timeout | undefined
  #shown = ''
  #brief: string | null = null
  #before: { at: number; pages: number } | null = null

  constructor(source: string, output: Output, prefix: string) {
    this.#source = source
    this.#output = output
    this.#prefix = prefix
    this.#terminal =
      process.stderr.isTTY && process.env['TERM'] !== 'dumb' && !process.env['NO_COLOR']
  }

  start(openStore: () => Promise<Store>): void {
    const tick = (): void => {
      void this.#draw(openStore)
    }
    this.#timer = setInterval(tick, this.#terminal ? REDRAW_MS : PLAIN_EVERY_MS)
    this.#timer.unref()
  }

  /** A line of the log, above the live one. */
  log(text: string): void {
    this.#erase()
    this.#output.note(`${this.#prefix}${text}`)
    this.#show(this.#shown)
  }

  /** How far the run was when it was last looked at, in a few words. */
  get brief(): string {
    return this.#brief ?? `working on ${this.#source}`
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#erase()
    this.#shown = ''
  }

  async #draw(openStore: () => Promise<Store>): Promise<void> {
    // If the database is unreachable, the log has reported it.
    const [run, now] = await openStore()
      .then((store) => Promise.all([store.liveRun(this.#source), store.now()]))
      .catch(() => [null, 0] as const)
    this.#brief = run ? this.#describeBriefly(run) : `waiting for a run of ${this.#source}`
    if (!run || !this.#timer) return
    const text = this.#describe(run, now)
    if (!this.#terminal) return this.#output.note(`${this.#prefix}${text}`)
    this.#erase()
    this.#show(text)
  }

  #describeBriefly(run: Run): string {
    const done = `${formatDoneOfTotal(howFar(run))} targets`
    return `run ${shortId(run.id)} of ${this.#source}: ${done}, ${run.counts.pages} pages`
  }

  #describe(run: Run, now: Millis): string {
    const { counts } = run
    const far = howFar(run)
    const rate = this.#before
      ? ((counts.pages - this.#before.pages) * 60_000) / (now - this.#before.at)
      : 0
    // A rate over less than a few seconds jumps about.
    if (!this.#before || now - this.#before.at > 5_000)
      this.#before = { at: now, pages: counts.pages }
    const parts = [
      `${barOf(far)} ${formatDoneOfTotal(far)} targets`,
      `${counts.pages} pages`,
      `${counts.itemsNew + counts.itemsUpdated} items`,
      ...(rate > 0 ? [`${Math.round(rate)} pages/min`] : []),
      `last change ${humanizeAgo(now - run.lastActivityAt)}`,
    ]
    return parts.join(' · ')
  }

  #show(text: string): void {
    this.#shown = text
    if (this.#terminal && text !== '')
      process.stderr.write(text.slice(0, (process.stderr.columns || 80) - 1))
  }

  #erase(): void {
    // Also when it is not ours: worker processes write to the terminal on which their parent shows its line.
    if (this.#terminal) process.stderr.write('\r\u001B[2K')
  }
}
