import { useState } from 'preact/hooks'
import { formatNumber, safe } from '../model/format.ts'
import type { Recovery } from '../shapes.ts'
import { idOf, type ListedChange } from './action-state.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'
import { Link } from './link.tsx'
import { StatusPill } from './status.tsx'
import { Age, asSentence, Text } from './text.tsx'

const INITIAL_ROWS = 10
const ROWS_PER_STEP = 100

/** Changes, each with its reason and, unfolded, its evidence. `more`: how many are not listed. */
export function Changes(props: {
  of: readonly ListedChange[]
  more?: number
  isUnfolded?: boolean
}) {
  const { of, more = 0, isUnfolded = false } = props
  const [shown, setShown] = useState(INITIAL_ROWS)
  const left = of.length - shown
  return (
    <>
      <ul class="list">
        {of.slice(0, shown).map((change, index) => (
          <ChangeRow
            key={idOf(change) + change.action}
            change={change}
            isUnfolded={isUnfolded && !isSameEvidence(change, of[index - 1])}
          />
        ))}
      </ul>
      {left > 0 && (
        <p class="foot">
          <Button
            size="small"
            kind="quiet"
            icon="down"
            onClick={() => setShown(shown + ROWS_PER_STEP)}
          >
            Show {formatNumber(Math.min(left, ROWS_PER_STEP))} more of{' '}
            {formatNumber(of.length + more)}
          </Button>
        </p>
      )}
      {left <= 0 && more > 0 && (
        <p class="foot">And {formatNumber(more)} more, which are not listed.</p>
      )}
    </>
  )
}

function ChangeRow({ change, isUnfolded }: { change: ListedChange; isUnfolded: boolean }) {
  const { subject, because, blockedBy, evidence } = change
  const outcome = 'outcome' in change ? change.outcome : 'planned'
  return (
    <li class="entry" data-row tabIndex={-1}>
      <div class="row">
        <Outcome of={outcome} />
        <StatusPill is={change.action} />
        <Link
          to={subject.kind === 'target' ? `/targets/${idOf(change)}` : `/runs/${runOf(change)}`}
          class="entry-what"
        >
          <Text value={subject.label} />
        </Link>
        {'from' in change && subject.kind !== 'row' && <Move {...change} />}
      </div>
      <p class="soft">
        <Text value={asSentence(blockedBy === null ? because : `${because}. ${blockedBy}`)} />
        {outcome === 'changed-meanwhile' && <strong> Not applied: it changed meanwhile.</strong>}
      </p>
      <Evidence of={evidence} isOpen={isUnfolded} />
    </li>
  )
}

function runOf(change: ListedChange): string {
  return 'id' in change ? change.id : change.run
}

/** Targets of one dead worker have the same evidence, which is unfolded once. */
function isSameEvidence(change: ListedChange, before: ListedChange | undefined): boolean {
  return before !== undefined && change.evidence.join() === before.evidence.join()
}

/** Processes of earlier copies of commands; nothing if there is none. */
export function Processes({ of }: { of: Recovery['processes'] }) {
  if (of.length === 0) return null
  return (
    <ul class="list" aria-label="Processes of earlier copies">
      {of.map(({ source, host, pid, command, since, outcome }) => (
        <li key={pid} class="entry">
          <div class="row">
            <StatusPill is={PROCESS_STATUS[outcome]} />
            <span class="entry-what">
              process {pid} on <Text value={host} />
            </span>
            <span class="faint small">
              of an earlier copy of <Text value={source} />, started <Age at={since} />
            </span>
          </div>
          <p class="soft">
            <Text value={command} mono />
          </p>
        </li>
      ))}
    </ul>
  )
}

const PROCESS_STATUS = { planned: 'end', ended: 'ended', running: 'still runs' } as const

/** What a verdict is based on; nothing if there is none. */
export function Evidence({ of, isOpen = false }: { of: readonly string[]; isOpen?: boolean }) {
  if (of.length === 0) return null
  return (
    <details class="more-text" open={isOpen}>
      <summary>Evidence</summary>
      <p>
        <Text value={of.join(' ')} />
      </p>
    </details>
  )
}

function Outcome({ of }: { of: string }) {
  if (of !== 'applied' && of !== 'changed-meanwhile') return null
  const isApplied = of === 'applied'
  return (
    <span class={`toned tone-${isApplied ? 'good' : 'warn'}`}>
      <Icon name={isApplied ? 'check' : 'dash'} size={14} />
      <span class="visually-hidden">{isApplied ? 'Applied: ' : 'Not applied: '}</span>
    </span>
  )
}

/** `in progress → planned`; nothing if the status stays. */
function Move({ from, to }: { from: string; to: string }) {
  if (from === to) return null
  return (
    <span class="faint small">
      {safe(from.replaceAll('_', ' '))}
      <span aria-hidden="true"> → </span>
      <span class="visually-hidden">becomes</span>
      {safe(to.replaceAll('_', ' '))}
    </span>
  )
}
