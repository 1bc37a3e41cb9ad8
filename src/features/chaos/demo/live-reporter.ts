import type { Output } from '../../../interfaces/cli/output.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import type { Ink } from '../../../lib/terminal/table.ts'
import { percent } from '../../../presenters/format.ts'
import { makeScreen } from '../../../interfaces/cli/watch.ts'
import type { Look } from './snapshot.ts'
import { clock, thousands, type Headline, type Narrator } from './reporter.ts'
import { nameOf, Roster, type Place } from './worker-list.ts'

const REDRAW_MS = 120
const EVENTS_KEPT = 12
const BAR_MAX = 30
const WORKERS_MAX = 10

type Event = { readonly at: string; readonly what: string; outcome: string | null; isOver: boolean }

const STATES: Record<Place['state'], { readonly text: string; readonly ink: Ink | undefined }> = {
  working: { text: 'working', ink: undefined },
  idle: { text: 'idle', ink: 'dim' },
  'took over': { text: 'took over', ink: 'good' },
  killed: { text: '✝ kill -9', ink: 'bad' },
  stopped: { text: 'stopped', ink: 'warn' },
  leaving: { text: 'leaving', ink: 'warn' },
}

/** For a terminal: a small screen, drawn over and over in place, and gone at the end to make room for the report. */
export function makeLiveNarrator(headline: Headline, workers: number, output: Output): Narrator {
  const screen = makeScreen(output)
  const roster = new Roster(workers)
  const events: Event[] = []
  let look: Look | null = null
  let drawing = Promise.resolve()

  const draw = (): void => {
    const paper = output.paper()
    drawHeadline(paper, headline, look)
    drawWorkers(paper, roster.places)
    drawEvents(paper, events, output)
    drawing = screen.draw(paper.toString())
  }
  const add = (what: string, outcome: string | null): Event => {
    const event = { at: clock(headline.startedAt), what, outcome, isOver: outcome === null }
    events.push(event)
    if (events.length > EVENTS_KEPT) events.shift()
    return event
  }
  const timer = setInterval(draw, REDRAW_MS)
  timer.unref()

  return {
    tell: (sentence) => void add(sentence, null),
    begin(what, meanwhile) {
      const event = add(what, meanwhile)
      return {
        end(outcome) {
          event.outcome = outcome
          event.isOver = true
        },
      }
    },
    mark: (worker, mark) => roster.mark(worker, mark),
    markAll: (mark) => roster.markAll(mark),
    show(now) {
      look = now
      roster.see(now)
    },
    async close() {
      clearInterval(timer)
      await drawing
      await screen.draw('')
    },
  }
}

function drawHeadline(paper: Paper, headline: Headline, look: Look | null): void {
  const pages = look?.run.counts.pages ?? 0
  const items = look ? look.run.counts.itemsNew + look.run.counts.itemsUpdated : 0
  const cells = Math.min(BAR_MAX, Math.max(8, paper.columns - 50))
  const full = Math.floor((cells * pages) / headline.pages)
  paper.line({ text: headline.title, ink: 'strong' }, `  ${clock(headline.startedAt)}`)
  paper.line({ text: `watch it in a browser: ${headline.dashboard}`, ink: 'dim' })
  paper.blank()
  paper.line(
    { text: '█'.repeat(full), ink: 'good' },
    { text: '░'.repeat(cells - full), ink: 'dim' },
    `  ${percent(pages, headline.pages)}  ${thousands(pages)} of ${thousands(headline.pages)} pages, ${thousands(items)} items`,
  )
  paper.line(headline.deeds())
  paper.blank()
}

function drawWorkers(paper: Paper, places: readonly (Place | null)[]): void {
  paper.table(
    [
      { head: 'WORKER' },
      { head: 'PID', optional: 1 },
      { head: 'STATE    ' },
      { head: 'PAGE   ' },
      { head: 'TARGET', flex: true },
    ],
    places.slice(0, WORKERS_MAX).map((place) => {
      if (!place) return ['–', '', { text: 'starting', ink: 'dim' }, '', '']
      const { target, pid, state } = place
      const page = target ? `${target.page + 1} of ${target.pageTarget ?? '?'}` : ''
      const faded = state === 'killed' ? ('dim' as const) : undefined
      const dye = (text: string): { text: string; ink: Ink | undefined } => ({ text, ink: faded })
      return [
        dye(nameOf(place)),
        dye(String(pid)),
        STATES[state],
        dye(page),
        dye(target?.key ?? ''),
      ]
    }),
  )
  if (places.length > WORKERS_MAX) paper.line(`… and ${places.length - WORKERS_MAX} more`)
  paper.blank()
}

/** The newest at the bottom, as many as there is room for. */
function drawEvents(paper: Paper, events: readonly Event[], output: Output): void {
  const used = paper.toString().split('\n').length
  let room = output.rows - used
  const shown: Event[] = []
  for (const event of events.toReversed()) {
    room -= event.outcome === null ? 1 : 2
    if (room < 0) break
    shown.unshift(event)
  }
  for (const { at, what, outcome, isOver } of shown) {
    paper.line({ text: `${at.padStart(5)}  `, ink: 'dim' }, what)
    if (outcome !== null)
      paper.line(' '.repeat(7), { text: outcome, ink: isOver ? 'good' : 'warn' })
  }
}
