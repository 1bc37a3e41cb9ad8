import { shortId, type WorkerId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import { makeScreen, type ScreenOutput } from '../../../lib/terminal/screen.ts'
import type { Style } from '../../../lib/text/sentence.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { percent } from '../../../presenters/format.ts'
import { formatPage } from '../../../presenters/view.ts'
import { formatElapsed, formatNumber } from '../progress.ts'
import type { Snapshot } from './worker-pool.ts'

/** What the demo did to a worker. */
type WorkerMark = 'killed' | 'stopped' | 'leaving'

/** Shows the progress of the demo. */
export type Reporter = {
  /** Adds an event. */
  log(sentence: string): void
  /** Adds an event that takes time: shows `meanwhile` until `end` is called with the outcome. */
  start(what: string, meanwhile: string): { end(outcome: string): void }
  mark(worker: WorkerId, mark: WorkerMark | null): void
  /** Called several times a second. */
  update(snapshot: Snapshot): void
  close(): Promise<void>
}

/** The figures of the headline. */
export type Headline = {
  readonly title: string
  /** The address of the dashboard. */
  readonly dashboard: string
  readonly pages: number
  readonly startedAt: number
  /** The faults so far, in one line. */
  faultSummary(): string
}

const STATUS_INTERVAL_MS = 5_000

/** For pipes and logs: one line per event, and the progress every few seconds. */
export function makePlainReporter(
  headline: Headline,
  write: (line: string) => void | Promise<void>,
): Reporter {
  let statusAt = performance.now()
  const log = (sentence: string): void => {
    void write(`${formatElapsed(headline.startedAt).padStart(5)}  ${sentence}`)
  }
  void write(headline.title)
  void write(`watch it in a browser: ${headline.dashboard}`)
  return {
    log,
    start: (what) => ({ end: (outcome) => log(`${what}: ${outcome}`) }),
    mark() {},
    update(snapshot) {
      if (performance.now() - statusAt < STATUS_INTERVAL_MS) return
      statusAt = performance.now()
      log(`${progressText(headline, snapshot)}, ${headline.faultSummary()}`)
    },
    async close() {},
  }
}

function progressText({ pages: total }: Headline, snapshot: Snapshot | null): string {
  const { pages = 0, itemsNew = 0, itemsUpdated = 0 } = snapshot?.run.counts ?? {}
  const items = formatNumber(itemsNew + itemsUpdated)
  return `${formatNumber(pages)} of ${formatNumber(total)} pages, ${items} items`
}

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

/** For a terminal: a screen that is redrawn in place, and erased at the end to make room for the report. */
export function makeLiveReporter(
  headline: Headline,
  workers: number,
  output: ScreenOutput,
): Reporter {
  const screen = makeScreen(output)
  const rows: (WorkerRow | null)[] = Array.from({ length: workers }, () => null)
  const marks = new Map<WorkerId, WorkerMark>()
  const events: EventLine[] = []
  let snapshot: Snapshot | null = null
  let drawing = Promise.resolve()

  const draw = (): void => {
    const writer = output.makeWriter()
    drawHeadline(writer, headline, snapshot)
    drawWorkers(writer, rows, marks)
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
      return { end: (outcome) => void Object.assign(event, { outcome, isOver: true }) }
    },
    mark(worker, mark) {
      if (mark === null) marks.delete(worker)
      else marks.set(worker, mark)
    },
    update(now) {
      snapshot = now
      updateRows(rows, now, marks)
    },
    async close() {
      clearInterval(timer)
      await drawing
      await screen.draw('')
    },
  }
}

/** One line of the list of workers. */
type WorkerRow = { readonly worker: WorkerId; readonly pid: number; readonly target: Target | null }

/** A new worker replaces one that has ended, so that the others keep their line. */
function updateRows(
  rows: (WorkerRow | null)[],
  { workers, held }: Snapshot,
  marks: ReadonlyMap<WorkerId, WorkerMark>,
): void {
  const isLive = (row: WorkerRow | null): boolean => workers.some(({ id }) => id === row?.worker)
  for (const { id, process } of workers) {
    const listed = rows.findIndex((row) => row?.worker === id)
    const index = listed < 0 ? rows.findIndex((row) => !isLive(row)) : listed
    if (index < 0) continue
    // The target of a stopped worker stays on its line, also when another worker has it.
    const kept = marks.has(id) ? (rows[index]?.target ?? null) : null
    rows[index] = { worker: id, pid: process.pid, target: held.get(id) ?? kept }
  }
}

function drawHeadline(writer: TextWriter, headline: Headline, snapshot: Snapshot | null): void {
  const pages = snapshot?.run.counts.pages ?? 0
  const cells = Math.min(BAR_MAX, Math.max(8, writer.columns - 50))
  const full = Math.floor((cells * pages) / headline.pages)
  writer.line({ text: headline.title, style: 'strong' }, `  ${formatElapsed(headline.startedAt)}`)
  writer.line({ text: `watch it in a browser: ${headline.dashboard}`, style: 'dim' })
  writer.blank()
  writer.line(
    { text: '█'.repeat(full), style: 'good' },
    { text: '░'.repeat(cells - full), style: 'dim' },
    `  ${percent(pages, headline.pages)}  ${progressText(headline, snapshot)}`,
  )
  writer.line(headline.faultSummary())
  writer.blank()
}

const MARKS: Readonly<Record<WorkerMark, { text: string; style: Style }>> = {
  killed: { text: 'kill -9', style: 'bad' },
  stopped: { text: 'stopped', style: 'warn' },
  leaving: { text: 'leaving', style: 'warn' },
}

function drawWorkers(
  writer: TextWriter,
  rows: readonly (WorkerRow | null)[],
  marks: ReadonlyMap<WorkerId, WorkerMark>,
): void {
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
      const { worker, target, pid } = row
      const mark = marks.get(worker)
      const page = target ? formatPage({ ...target, page: target.page + 1 }, ' of ') : ''
      const state = target ? 'working' : { text: 'idle', style: 'dim' as const }
      return [shortId(worker), String(pid), mark ? MARKS[mark] : state, page, target?.key ?? '']
    }),
  )
  if (rows.length > WORKERS_MAX) writer.line(`… and ${rows.length - WORKERS_MAX} more`)
  writer.blank()
}

/** Draws the newest events, as many as fit, the newest last. */
function drawEvents(writer: TextWriter, events: readonly EventLine[], output: ScreenOutput): void {
  let room = output.rows - writer.toString().split('\n').length
  const shown = events.toReversed().filter(({ outcome }) => {
    room -= outcome === null ? 1 : 2
    return room >= 0
  })
  for (const { at, what, outcome, isOver } of shown.toReversed()) {
    writer.line({ text: `${at.padStart(5)}  `, style: 'dim' }, what)
    if (outcome !== null)
      writer.line(' '.repeat(7), { text: outcome, style: isOver ? 'good' : 'warn' })
  }
}
