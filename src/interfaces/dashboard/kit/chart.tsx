import { useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ChartPlot, type Plot } from './chart-plot.tsx'
import {
  currentAndPeak,
  linear,
  nearest,
  pointAfterKey,
  timeLabel,
  timeTicks,
  valueLabel,
  valueTicks,
  type ChartPoint,
} from './chart-scale.ts'

const AXIS_HEIGHT = 20
const TOP = 8
const RIGHT = 6
const DIGIT_WIDTH = 6.6
const TIME_ROOM = 76
const ONLY_POINT_ROOM_MS = 5 * 60_000

type ChartProps = {
  readonly label: string
  /** `pages/min`: what a value counts. */
  readonly unit: string
  readonly points: readonly ChartPoint[]
  readonly kind: 'area' | 'bars'
  readonly height?: number
  /** Shown in place of the newest value: null if it is not known. */
  readonly current?: number | null | undefined
  /** Nothing will be added: `current` is the mean. */
  readonly isOver?: boolean
}

/** Values over time, from 0, which a pointer and arrow keys read; a screen reader gets a table. */
export function Chart(props: ChartProps) {
  const { label, unit, points, kind, height = 132, isOver = false } = props
  const id = useId()
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [at, setAt] = useState<string | null>(null)
  const plot = useMemo(() => layOut(points, kind, width, height), [points, kind, width, height])
  const { now, peak } = useMemo(() => currentAndPeak(points), [points])
  const current = props.current === undefined ? now : props.current
  const isEmpty = points.every(({ value }) => value === null)
  const found = at === null ? -1 : points.findIndex((point) => point.at === at)
  const probe = found === -1 ? null : found
  const isLong = isOverMidnight(points)
  const probed = probe === null ? null : points[probe]!

  const probeAt = (event: PointerEvent) => {
    const left = frame.current?.getBoundingClientRect().left ?? 0
    const index = nearest(plot.xs, event.clientX - left)
    setAt(index === null ? null : points[index]!.at)
  }
  const step = (event: KeyboardEvent) => {
    if (event.key === 'Escape') return setAt(null)
    const index = pointAfterKey(event.key, probe, points.length)
    if (index === null) return
    event.preventDefault()
    setAt(points[index]!.at)
  }

  return (
    <figure class="chart">
      <figcaption class="row small chart-head">
        <span class="strong">{label}</span>
        <span class="soft">
          {isOver && 'mean '}
          <b>{current === null ? '–' : valueLabel(current)}</b>{' '}
          {unit !== label.toLowerCase() && unit}
        </span>
        <span class="faint small to-end" role="status">
          {probed ? reading(probed, unit, isLong) : peak && `peak ${reading(peak, '', isLong)}`}
        </span>
      </figcaption>
      <div
        ref={frame}
        class="chart-frame"
        tabIndex={0}
        role="img"
        aria-label={`${label}, ${unit}`}
        aria-describedby={id}
        onPointerMove={probeAt}
        onPointerDown={probeAt}
        onPointerLeave={() => setAt(null)}
        onKeyDown={step}
        onBlur={() => setAt(null)}
      >
        <ChartPlot plot={plot} probe={probe} />
        {isEmpty && <p class="chart-none">No samples in this time yet</p>}
      </div>
      <p id={id} class="visually-hidden">
        {describe(points, unit)} Arrow keys read single values.
      </p>
      <ChartTable label={label} unit={unit} points={points} />
    </figure>
  )
}

/** All values, for screen readers. */
function ChartTable({ label, unit, points }: Pick<ChartProps, 'label' | 'unit' | 'points'>) {
  return useMemo(
    () => (
      <div class="visually-hidden">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">{unit}</th>
            </tr>
          </thead>
          <tbody>
            {points.map(({ at, value }) => (
              <tr key={at}>
                <th scope="row">{clock(at, true)}</th>
                <td>{value === null ? 'no sample' : valueLabel(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    ),
    [label, unit, points],
  )
}

function layOut(
  points: readonly ChartPoint[],
  kind: ChartProps['kind'],
  width: number,
  height: number,
): Plot {
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]))
  const ticks = valueTicks(Math.max(0, ...values), values.every(Number.isInteger))
  const left = Math.max(...ticks.map((tick) => valueLabel(tick).length)) * DIGIT_WIDTH + 8
  const [right, bottom] = [Math.max(left + 1, width - RIGHT), height - AXIS_HEIGHT]
  const times = points.map(({ at }) => Date.parse(at))
  // A single point stands in the middle.
  const beside = times.length === 1 ? ONLY_POINT_ROOM_MS : 0
  const [from, until] = [(times[0] ?? 0) - beside, (times.at(-1) ?? 1) + beside]
  // A bar is as wide as its step, so the outer two need half of one more at each end.
  const inset = kind === 'bars' && points.length > 1 ? (right - left) / points.length / 2 : 0
  const room = Math.floor((right - left - 2 * inset) / TIME_ROOM)
  const x = linear(from, until, left + inset, right - inset)
  const y = linear(0, ticks.at(-1)!, bottom, TOP)
  return {
    kind,
    width,
    height,
    left,
    right,
    bottom,
    points,
    xs: times.map(x),
    ys: points.map(({ value }) => (value === null ? null : y(value))),
    valueTicks: ticks.map((tick) => ({ y: y(tick), label: valueLabel(tick) })),
    timeTicks: timeTicks(from, until, room).map((tick) => ({
      x: x(tick),
      label: timeLabel(tick),
    })),
  }
}

/** Follows the width that the page gives it, so that letters and lines keep their size. */
function useWidth(frame: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const element = frame.current
    if (!element) return
    const measure = () => setWidth(Math.floor(element.clientWidth))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [frame])
  return width
}

/** Whether an hour alone may be of another day. */
function isOverMidnight(points: readonly ChartPoint[]): boolean {
  const [from, until] = [points[0], points.at(-1)].map(
    (point) => point && new Date(point.at).toDateString(),
  )
  return from !== until
}

function reading({ at, value }: ChartPoint, unit: string, isLong: boolean): string {
  const text = value === null ? 'no sample' : `${valueLabel(value)} ${unit}`.trim()
  return `${text} at ${clock(at, isLong)}`
}

function describe(points: readonly ChartPoint[], unit: string): string {
  const { now, peak } = currentAndPeak(points)
  if (points.every(({ value }) => value === null)) return 'No samples.'
  const current = now === null ? 'no current value' : `now ${valueLabel(now)} ${unit}`
  const [from, until] = [points[0]!, points.at(-1)!].map(({ at }) => clock(at, true))
  const highest = peak ? `, peak ${reading(peak, unit, true)}` : ''
  return `From ${from} to ${until}: ${current}${highest}.`
}

/** The day too, where the same hour comes twice. */
function clock(at: string, isLong: boolean): string {
  return new Date(at).toLocaleString('en-GB', {
    ...(isLong && { weekday: 'short' }),
    hour: '2-digit',
    minute: '2-digit',
    ...(Date.parse(at) % 60_000 !== 0 && { second: '2-digit' }),
  })
}
