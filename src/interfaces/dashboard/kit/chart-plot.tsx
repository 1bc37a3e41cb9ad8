import { measuredRanges, type ChartPoint } from './chart-scale.ts'

/** A chart in pixels, ready to be drawn. */
export type Plot = {
  readonly kind: 'area' | 'bars'
  readonly width: number
  readonly height: number
  readonly left: number
  readonly right: number
  /** Where 0 is. */
  readonly bottom: number
  readonly points: readonly ChartPoint[]
  readonly xs: readonly number[]
  /** Null where nothing was measured. */
  readonly ys: readonly (number | null)[]
  readonly valueTicks: readonly { readonly y: number; readonly label: string }[]
  readonly timeTicks: readonly { readonly x: number; readonly label: string }[]
}

/** The drawing; the frame around it describes it. */
export function ChartPlot({ plot, probe }: { plot: Plot; probe: number | null }) {
  if (plot.width === 0) return null
  const { width, height } = plot
  return (
    <svg class="chart-svg" width={width} height={height} aria-hidden="true" focusable="false">
      <Axes plot={plot} />
      <Gaps plot={plot} />
      {plot.kind === 'bars' ? <Bars plot={plot} probe={probe} /> : <Line plot={plot} />}
      {probe !== null && <Probe plot={plot} at={probe} />}
    </svg>
  )
}

function Axes({ plot: { left, right, bottom, height, valueTicks, timeTicks } }: { plot: Plot }) {
  return (
    <g>
      {valueTicks.map(({ y, label }, index) => (
        <g key={label}>
          <line
            class={index === 0 ? 'chart-base' : 'chart-grid'}
            x1={left}
            x2={right}
            y1={crisp(y)}
            y2={crisp(y)}
          />
          <text class="chart-tick" x={left - 6} y={y} dy="0.32em" text-anchor="end">
            {label}
          </text>
        </g>
      ))}
      {timeTicks.map(({ x, label }) => (
        <g key={x}>
          <line class="chart-base" x1={crisp(x)} x2={crisp(x)} y1={bottom} y2={bottom + 3} />
          <text
            class="chart-tick"
            x={x}
            y={height - 4}
            text-anchor={x + 18 > right ? 'end' : x - 18 < left ? 'start' : 'middle'}
          >
            {label}
          </text>
        </g>
      ))}
    </g>
  )
}

/** Shades steps without a sample: they are not 0. */
function Gaps({ plot: { points, xs, bottom } }: { plot: Plot }) {
  if (points.every(({ value }) => value === null)) return null
  const holes = measuredRanges(
    points.map(({ at, value }) => ({ at, value: value === null ? 0 : null })),
  )
  const middle = (a: number, b: number) => ((xs[a] ?? xs[b]!) + (xs[b] ?? xs[a]!)) / 2
  return (
    <g>
      {holes.map((hole) => {
        const from = middle(hole[0]! - 1, hole[0]!)
        const until = middle(hole.at(-1)!, hole.at(-1)! + 1)
        const width = Math.max(0, until - from)
        return (
          <rect key={hole[0]} class="chart-gap" x={from} y={8} width={width} height={bottom - 8} />
        )
      })}
    </g>
  )
}

function Line({ plot: { points, xs, ys, bottom } }: { plot: Plot }) {
  return (
    <g>
      {measuredRanges(points).map((stretch) => {
        const [first, last] = [stretch[0]!, stretch.at(-1)!]
        // A single sample is a dot.
        if (first === last)
          return <circle key={first} class="chart-dot" cx={xs[first]} cy={ys[first]!} r={1.75} />
        const line = stretch.map((index) => `${place(xs[index]!)},${place(ys[index]!)}`).join('L')
        const floor = `L${place(xs[last]!)},${bottom}L${place(xs[first]!)},${bottom}Z`
        return (
          <g key={first}>
            <path class="chart-area" d={`M${line}${floor}`} />
            <path class="chart-line" d={`M${line}`} />
          </g>
        )
      })}
    </g>
  )
}

function Bars({ plot, probe }: { plot: Plot; probe: number | null }) {
  const { points, xs, ys, left, right, bottom } = plot
  const step = (right - left) / Math.max(1, points.length)
  const width = Math.min(28, Math.max(1, step - (step > 4 ? 2 : 0.5)))
  return (
    <g>
      {points.map(({ at, value }, index) =>
        value === null || value === 0 ? null : (
          <rect
            key={at}
            class={index === probe ? 'chart-bar is-probed' : 'chart-bar'}
            x={xs[index]! - width / 2}
            y={Math.min(ys[index]!, bottom - 1)}
            width={width}
            height={Math.max(1, bottom - ys[index]!)}
            rx={width > 6 ? 1.5 : 0}
          />
        ),
      )}
    </g>
  )
}

function Probe({ plot: { xs, ys, bottom }, at }: { plot: Plot; at: number }) {
  const y = ys[at]
  return (
    <g>
      <line class="chart-probe" x1={crisp(xs[at]!)} x2={crisp(xs[at]!)} y1={4} y2={bottom} />
      {typeof y === 'number' && <circle class="chart-dot" cx={xs[at]} cy={y} r={3} />}
    </g>
  )
}

/** On half a pixel a line of one pixel is sharp. */
function crisp(value: number): number {
  return Math.round(value) + 0.5
}

function place(value: number): string {
  return value.toFixed(1)
}
