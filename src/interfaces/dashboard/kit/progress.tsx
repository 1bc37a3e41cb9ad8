import { formatKnown, formatNumber, percent, plural, type Tone } from '../model/format.ts'

/** How far it is. What is not known has no bar: only what is. */
export function Progress(props: {
  /** Null: not known. */
  done: number | null
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
  const { bad = 0, tone = 'busy', size = 'normal' } = props
  const isGrowing = props.isTotalKnown === false
  const isShareKnown = !isGrowing && props.total !== null && props.done !== null
  const [done, total] = [props.done ?? 0, props.total ?? 0]
  // Without a known share nothing of the bar is filled.
  const whole = isShareKnown ? Math.max(total, 1) : Infinity
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
        aria-valuemax={isShareKnown ? whole : undefined}
        aria-valuenow={props.done === null ? undefined : Math.min(done, whole)}
        aria-valuetext={
          isShareKnown
            ? `${formatNumber(done)} of ${plural(total, 'target')}, ${share} %`
            : props.done === null
              ? `the total is ${formatKnown(props.total)}, what is done is not known`
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
          {formatKnown(props.done)}
          <span class="faint">
            {' / '}
            {formatKnown(props.total)}
            {isGrowing && '+'}
          </span>
        </span>
        <span class="faint">
          {isShareKnown
            ? `${share} %`
            : isGrowing
              ? 'still planning'
              : props.done === null
                ? 'share unknown'
                : 'total unknown'}
        </span>
      </div>
    </div>
  )
}
