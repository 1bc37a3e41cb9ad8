import { ActionButtons } from '../../kit/action-host.tsx'
import { Age } from '../../kit/age.tsx'
import { CopyButton } from '../../kit/copy.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Link } from '../../kit/link.tsx'
import { Pill } from '../../kit/status.tsx'
import { Text } from '../../kit/text.tsx'
import { STATUS_STYLES } from '../../model/status-style.ts'
import { plural, formatNumber } from '../../model/format.ts'
import type { DeadLetters } from '../../shapes.ts'
import { DeadLetterTargets } from './group-targets.tsx'

export type Group = DeadLetters['groups'][number]

/** One kind of error: how often, where, since when; unfolded its targets. */
export function DeadLetterGroup(props: {
  group: Group
  /** Only of this source; empty: of all. */
  source: string
  /** There are more than were counted. */
  isPartial: boolean
  isOpen: boolean
  onToggle: (isOpen: boolean) => void
}) {
  const { group, source, isPartial, isOpen, onToggle } = props
  const { fingerprint, error, count, sources, firstAt, lastAt } = group
  const [first, ...rest] = error.split('\n')
  return (
    <li class="letter frame" data-row tabIndex={-1}>
      <div class="letter-head">
        <span class="letter-count">
          {isPartial && <span class="faint small">at least </span>}
          {formatNumber(count)}
          <span class="visually-hidden"> {count === 1 ? 'target' : 'targets'}</span>
        </span>
        <div class="letter-words">
          <h2 class="clamp">
            <Text value={first ?? ''} mono />
          </h2>
          {rest.length > 0 && (
            <details class="more-text">
              <summary>The whole error</summary>
              <pre class="code">
                <Text value={error} />
              </pre>
              <CopyButton text={error} label="Copy the error" word="Copy" />
            </details>
          )}
          <div class="row small">
            {(['failed', 'stuck', 'parked'] as const).map((status) => {
              const own = group.statuses[status] ?? 0
              const { tone, icon, label } = STATUS_STYLES[status]
              return own === 0 ? null : (
                <Pill
                  key={status}
                  tone={tone}
                  icon={icon}
                  label={`${formatNumber(own)} ${label}`}
                />
              )
            })}
            <span class="row">
              {sources.map((one) => (
                <Link key={one} to={`/dead-letters?source=${encodeURIComponent(one)}`}>
                  <Text value={one} />
                </Link>
              ))}
            </span>
            <span class="faint">
              first <Age at={firstAt} />, last <Age at={lastAt} />
            </span>
          </div>
        </div>
        <div class="actions letter-actions">
          <ActionButtons actions={group.actions} size="small" />
          <button
            type="button"
            class="button button-quiet button-small letter-toggle"
            aria-expanded={isOpen}
            onClick={() => onToggle(!isOpen)}
          >
            <Icon name={isOpen ? 'down' : 'right'} />
            <span>
              {isOpen ? 'Hide' : 'Show'}{' '}
              <span class="visually-hidden">{plural(count, 'target')} of this error, </span>targets
            </span>
          </button>
        </div>
      </div>
      {isOpen && <DeadLetterTargets fingerprint={fingerprint} source={source} />}
    </li>
  )
}
