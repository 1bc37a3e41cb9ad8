import { formatNumber, percent, plural, type Tone } from '../model/format.ts'

/** How far it is. Without a known total there is no bar to lie with, only what is done. */
export function Progress(props: {
  done: number
  /** Null: not known. */
  total: number | null
  /** False while targets still come in. */
  isTotalKnown?: boolean
  /** Shown red at the end of the bar: what was given up. */
  bad?: number
  tone?: Tone
  size?: 'normal' | 'large'
  /** Over: drawn fainter, so that what moves stands out. */
  isEnded?: boolean
  label: string
}) {
  const { done, bad = 0, tone = 'busy', size = 'normal' } = props
  const isGrowing = props.isTotalKnown === false
  const isTotalKnown = !isGrowing && props.total !== null
  const total = props.total ?? 0
  // Without a known total nothing of the bar is filled.
  const whole = isTotalKnown ? Math.max(total, 1) : Infinity
  // Red beside red would say nothing.
  const shade = bad > 0 && tone === 'bad' ? 'quiet' : tone
  const share = percent(done, total)
  return (
    <div class={`progress progress-${size} tone-${shade}${props.isEnded ? ' progress-ended' : ''}`}>
      <div
        class="progress-track"
        role="progressbar"
        aria-label={props.label}
        aria-valuemin={0}
        aria-valuemax={isTotalKnown ? whole : undefined}
        aria-valuenow={Math.min(done, whole)}
        aria-valuetext={
          isTotalKnown
            ? `${formatNumber(done)} of ${plural(total, 'target')}, ${share} %`
            : `${formatNumber(done)} done, the total is not known yet`
        }
      >
        <div class="progress-done" style={{ width: `${(Math.min(done, whole) / whole) * 100}%` }} />
        {bad > 0 && (
          <div class="progress-bad" style={{ width: `${(Math.min(bad, whole) / whole) * 100}%` }} />
        )}
      </div>
      <div class="progress-words">
        <span>
          {formatNumber(done)}
          <span class="faint">
            {' / '}
            {props.total === null ? '?' : formatNumber(total)}
            {isGrowing && '+'}
          </span>
        </span>
        <span class="faint">
          {isTotalKnown ? `${share} %` : isGrowing ? 'still planning' : 'total unknown'}
        </span>
      </div>
    </div>
  )
}
