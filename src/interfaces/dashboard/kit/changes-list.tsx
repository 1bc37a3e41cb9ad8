import { useState } from 'preact/hooks'
import { formatNumber, safe } from '../model/format.ts'
import type { ActionChange } from './action-result.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { Link } from './link.tsx'
import { sentence, Text } from './text.tsx'
import { actionStyle, Pill } from './status.tsx'

const INITIAL_ROWS = 10
const ROWS_PER_STEP = 100

/** Changes, each with its reason and, unfolded, its evidence. `cut`: how many more there are. */
export function ChangesList(props: {
  of: readonly ActionChange[]
  cut?: number
  isUnfolded?: boolean
}) {
  const { of, cut = 0, isUnfolded = false } = props
  const [shown, setShown] = useState(INITIAL_ROWS)
  const more = of.length - shown
  return (
    <>
      <ul class="list">
        {of.slice(0, shown).map((deed, index) => (
          <ChangeRow
            key={deed.id + deed.action}
            change={deed}
            isUnfolded={isUnfolded && !isSameEvidence(deed, of[index - 1])}
          />
        ))}
      </ul>
      {more > 0 && (
        <p class="list-more">
          <Button
            size="small"
            kind="quiet"
            icon="down"
            onClick={() => setShown(shown + ROWS_PER_STEP)}
          >
            Show {formatNumber(Math.min(more, ROWS_PER_STEP))} more of{' '}
            {formatNumber(of.length + cut)}
          </Button>
        </p>
      )}
      {more <= 0 && cut > 0 && (
        <p class="list-more">And {formatNumber(cut)} more, which are not listed.</p>
      )}
    </>
  )
}

function ChangeRow({ change, isUnfolded }: { change: ActionChange; isUnfolded: boolean }) {
  const { label, icon, tone } = actionStyle(change.action)
  return (
    <li class="entry" data-row tabIndex={-1}>
      <div class="row">
        <Outcome of={change.outcome} />
        <Pill tone={tone} icon={icon} label={label} />
        {change.page ? (
          <Link to={change.page} class="entry-what">
            <Text value={change.what} />
          </Link>
        ) : (
          <Text value={change.what} />
        )}
        <Move from={change.from} to={change.to} />
      </div>
      {change.because !== '' && (
        <p class="entry-because">
          <Text value={sentence(change.because)} />
          {change.outcome === 'changed-meanwhile' && <strong> It was left alone.</strong>}
        </p>
      )}
      {change.evidence.length > 0 && (
        <details class="more-text" open={isUnfolded}>
          <summary>The evidence</summary>
          <p>
            <Text value={change.evidence.join(' ')} />
          </p>
        </details>
      )}
    </li>
  )
}

/** Targets of one dead worker have the same evidence, which is unfolded once. */
function isSameEvidence(change: ActionChange, before: ActionChange | undefined): boolean {
  return before !== undefined && change.evidence.join() === before.evidence.join()
}

function Outcome({ of }: { of: ActionChange['outcome'] }) {
  if (of !== 'applied' && of !== 'changed-meanwhile') return null
  return of === 'applied' ? (
    <span class="entry-outcome tone-good">
      <Icon name="check" size={14} />
      <span class="visually-hidden">Done: </span>
    </span>
  ) : (
    <span class="entry-outcome tone-warn">
      <Icon name="dash" size={14} />
      <span class="visually-hidden">Not done: </span>
    </span>
  )
}

/** `in progress → planned`; nothing where nothing moves. */
function Move({ from, to }: { from: string | null; to: string | null }) {
  if (from === to || from === null || to === null) return null
  return (
    <span class="faint small">
      {humanize(from)}
      <span aria-hidden="true"> → </span>
      <span class="visually-hidden">becomes</span>
      {humanize(to)}
    </span>
  )
}

function humanize(status: string): string {
  return safe(status.replaceAll('_', ' '))
}
