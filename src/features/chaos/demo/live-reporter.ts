import { shortId, type WorkerId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import { makeScreen, type ScreenOutput } from '../../../lib/terminal/screen.ts'
import type { Style } from '../../../lib/text/sentence.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { percent } from '../../../presenters/format.ts'
import { formatElapsed, formatNumber } from '../progress.ts'
import type { Headline, Reporter, WorkerMark } from './reporter.ts'
import type { Snapshot } from './snapshot.ts'

const REDRAW_MS = 120
const EVENTS_MAX = 12
const BAR_MAX = 30
const WORKERS_MAX = 10

type EventLine = {
  readonly at: string
  readonly what: string
  outcome: string | null
  isOver: boolean
}

const STATES: Record<
  WorkerRow['state'],
  { readonly text: string; readonly style: Style | undefined }
> = {
  working: { text: 'working', style: undefined },
  idle: { text: 'idle', style: 'dim' },
  'took over': { text: 'took over', style: 'good' },
  killed: { text: '✝ kill -9', style: 'bad' },
  stopped: { text: 'stopped', style: 'warn' },
  leaving: { text: 'leaving', style: 'warn' },
}

/** For a terminal: a screen that is redrawn in place, and erased at the end to make room for the report. */
export function makeLiveReporter(
  headline: Headline,
  workers: number,
  output: ScreenOutput,
): Reporter {
  const screen = makeScreen(output)
  const workerList = new WorkerList(workers)
  const events: EventLine[] = []
  let snapshot: Snapshot | null = null
  let drawing = Promise.resolve()

  const draw = (): void => {
    const writer = output.makeWriter()
    drawHeadline(writer, headline, snapshot)
    drawWorkers(writer, workerList.rows)
    drawEvents(writer, events, output)
    drawing = screen.draw(writer.toString())
  }
  const add = (what: string, outcome: string | null): EventLine => {
    const event = { at: formatElapsed(headline.startedAt), what, outcome, isOver: outcome === null }
    events.push(event)
    if (events.length > EVENTS_MAX) events.shift()
    return event
  }
  const timer = setInterval(draw, REDRAW_MS)
  timer.unref()

  return {
    log: (sentence) => void add(sentence, null),
    start(what, meanwhile) {
      const event = add(what, meanwhile)
      return {
        end(outcome) {
          event.outcome = outcome
          event.isOver = true
        },
      }
    },
    mark: (worker, mark) => workerList.mark(worker, mark),
    markAll: (mark) => workerList.markAll(mark),
    update(now) {
      snapshot = now
      workerList.update(now)
    },
    async close() {
      clearInterval(timer)
      await drawing
      await screen.draw('')
    },
  }
}

function drawHeadline(writer: TextWriter, headline: Headline, snapshot: Snapshot | null): void {
  const pages = snapshot?.run.counts.pages ?? 0
  const items = snapshot ? snapshot.run.counts.itemsNew + snapshot.run.counts.itemsUpdated : 0
  const cells = Math.min(BAR_MAX, Math.max(8, writer.columns - 50))
  const full = Math.floor((cells * pages) / headline.pages)
  writer.line({ text: headline.title, style: 'strong' }, `  ${formatElapsed(headline.startedAt)}`)
  writer.line({ text: `watch it in a browser: ${headline.dashboard}`, style: 'dim' })
  writer.blank()
  writer.line(
    { text: '█'.repeat(full), style: 'good' },
    { text: '░'.repeat(cells - full), style: 'dim' },
    `  ${percent(pages, headline.pages)}  ${formatNumber(pages)} of ${formatNumber(headline.pages)} pages, ${formatNumber(items)} items`,
  )
  writer.line(headline.faultSummary())
  writer.blank()
}

function drawWorkers(writer: TextWriter, rows: readonly (WorkerRow | null)[]): void {
  writer.table(
    [
      { header: 'WORKER' },
      { header: 'PID', optional: 1 },
      { header: 'STATE    ' },
      { header: 'PAGE   ' },
      { header: 'TARGET', flex: true },
    ],
    rows.slice(0, WORKERS_MAX).map((row) => {
      if (!row) return ['–', '', { text: 'starting', style: 'dim' }, '', '']
      const { target, pid, state } = row
      const page = target ? `${target.page + 1} of ${target.pageTarget ?? '?'}` : ''
      const dimIfKilled = state === 'killed' ? ('dim' as const) : undefined
      const styled = (text: string): { text: string; style: Style | undefined } => ({
        text,
        style: dimIfKilled,
      })
      return [
        styled(shortId(row.worker)),
        styled(String(pid)),
        STATES[state],
        styled(page),
        styled(target?.key ?? ''),
      ]
    }),
  )
  if (rows.length > WORKERS_MAX) writer.line(`… and ${rows.length - WORKERS_MAX} more`)
  writer.blank()
}

/** Draws the newest events, as many as fit, the newest last. */
function drawEvents(writer: TextWriter, events: readonly EventLine[], output: ScreenOutput): void {
  const used = writer.toString().split('\n').length
  let room = output.rows - used
  const shown: EventLine[] = []
  for (const event of events.toReversed()) {
    room -= event.outcome === null ? 1 : 2
    if (room < 0) break
    shown.unshift(event)
  }
  for (const { at, what, outcome, isOver } of shown) {
    writer.line({ text: `${at.padStart(5)}  `, style: 'dim' }, what)
    if (outcome !== null)
      writer.line(' '.repeat(7), { text: outcome, style: isOver ? 'good' : 'warn' })
  }
}

/** One line of the list of workers. */
type WorkerRow = {
  readonly worker: WorkerId
  readonly pid: number
  readonly target: Target | null
  readonly state: 'working' | 'idle' | 'took over' | WorkerMark
}

type Orphan = { readonly epoch: number; readonly page: number }

/** Assigns workers to lines: a new worker replaces one that has ended, so that the others keep their line. */
class WorkerList {
  readonly #rows: (WorkerRow | null)[]
  readonly #marks = new Map<WorkerId, WorkerMark>()
  /** Targets taken from a worker, until their next page is saved. */
  readonly #orphans = new Map<string, Orphan>()

  constructor(count: number) {
    this.#rows = Array.from({ length: count }, () => null)
  }

  get rows(): readonly (WorkerRow | null)[] {
    return this.#rows
  }

  mark(worker: WorkerId, mark: WorkerMark | null): void {
    if (mark === null) this.#marks.delete(worker)
    else this.#marks.set(worker, mark)
    const index = this.#rows.findIndex((row) => row?.worker === worker)
    const row = this.#rows[index]
    if (!row || mark === null) return
    this.#rows[index] = { ...row, state: mark }
    const { target } = row
    if (target) this.#orphans.set(target.id, { epoch: target.epoch, page: target.page })
  }

  markAll(mark: WorkerMark): void {
    for (const row of this.#rows) if (row) this.mark(row.worker, mark)
  }

  update({ workers, held }: Snapshot): void {
    const living = new Map(workers.map((worker) => [worker.id, worker]))
    for (const [index, row] of this.#rows.entries()) {
      const worker = row && living.get(row.worker)
      if (!worker) continue
      living.delete(worker.id)
      const target = held.get(worker.id) ?? null
      // The target of a stopped worker stays on its line, also when another worker has it.
      const shown = target ?? (this.#marks.has(worker.id) ? row.target : null)
      this.#rows[index] = { ...row, target: shown, state: this.#state(worker.id, target) }
    }
    for (const { id, process } of living.values()) {
      if (this.#marks.get(id) === 'killed') continue
      const index = this.#rows.findIndex((row) => !row || !isListed(row, workers))
      if (index < 0) return
      const target = held.get(id) ?? null
      this.#rows[index] = { worker: id, pid: process.pid, target, state: this.#state(id, target) }
    }
  }

  #state(worker: WorkerId, target: Target | null): WorkerRow['state'] {
    const mark = this.#marks.get(worker)
    if (mark) return mark
    if (!target) return 'idle'
    const orphan = this.#orphans.get(target.id)
    if (orphan && target.epoch > orphan.epoch && target.page === orphan.page) return 'took over'
    return 'working'
  }
}

function isListed(row: WorkerRow, workers: Snapshot['workers']): boolean {
  return workers.some(({ id }) => id === row.worker)
}
