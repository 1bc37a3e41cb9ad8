import type { Output } from '../../../interfaces/cli/output.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import type { Style } from '../../../lib/terminal/table.ts'
import { percent } from '../../../presenters/format.ts'
import { makeScreen } from '../../../interfaces/cli/watch.ts'
import type { Snapshot } from './snapshot.ts'
import { formatElapsed, formatNumber, type Headline, type Reporter } from './reporter.ts'
import { nameOf, WorkerList, type WorkerRow } from './worker-list.ts'

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
  { readonly text: string; readonly ink: Style | undefined }
> = {
  working: { text: 'working', ink: undefined },
  idle: { text: 'idle', ink: 'dim' },
  'took over': { text: 'took over', ink: 'good' },
  killed: { text: '✝ kill -9', ink: 'bad' },
  stopped: { text: 'stopped', ink: 'warn' },
  leaving: { text: 'leaving', ink: 'warn' },
}

/** For a terminal: a small screen, drawn over and over in place, and gone at the end to make room for the report. */
export function makeLiveReporter(headline: Headline, workers: number, output: Output): Reporter {
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
      if (!row) return ['–', '', { text: 'starting', ink: 'dim' }, '', '']
      const { target, pid, state } = row
      const page = target ? `${target.page + 1} of ${target.pageTarget ?? '?'}` : ''
      const dimIfKilled = state === 'killed' ? ('dim' as const) : undefined
      const styled = (text: string): { text: string; ink: Style | undefined } => ({
        text,
        ink: dimIfKilled,
      })
      return [
        styled(nameOf(row)),
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

/** The newest at the bottom, as many as there is room for. */
function drawEvents(writer: TextWriter, events: readonly EventLine[], output: Output): void {
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
