import { Age } from '../../kit/age.tsx'
import { CopyCommand } from '../../kit/copy.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Link } from '../../kit/link.tsx'
import { Section } from '../../kit/section.tsx'
import { safe } from '../../model/safe.ts'
import { plural } from '../../model/format.ts'
import type { Alert, Overview } from '../../shapes.ts'

/** What no machine decides: each with its reason and the next command. Not there when there is nothing. */
export function Attention({ overview: { attention: all, alerts, runs } }: { overview: Overview }) {
  // What the list of live runs says already is not said twice.
  const attention = all.filter(
    ({ run, what }) => !runs.some(({ id, health }) => id === run && health === what),
  )
  if (attention.length === 0) return null
  return (
    <Section title="Needs attention" note={plural(attention.length, 'thing')}>
      <ul class="list">
        {attention.map((item) => (
          <AttentionItem
            key={`${item.source} ${item.run} ${item.what}`}
            {...item}
            alert={alerts.find((alert) => isAbout(alert, item))}
          />
        ))}
      </ul>
    </Section>
  )
}

function isAbout(alert: Alert, item: Overview['attention'][number]): boolean {
  if (item.run !== null) return alert.run === item.run
  return alert.source === item.source || alert.because === item.because
}

function AttentionItem(props: Overview['attention'][number] & { alert: Alert | undefined }) {
  const { run, source, what, because, command, alert } = props
  return (
    <li class="thing" data-row tabIndex={-1}>
      <div class="thing-words">
        <p>
          {run === null ? (
            <strong>{safe(source)}</strong>
          ) : (
            <Link to={`/runs/${run}`} class="row-link">
              {safe(source)}
            </Link>
          )}
          <span class="thing-what">{safe(what)}</span>
          {alert && (
            <span class="thing-alert">
              <Icon name="bell" size={13} />
              alerted <Age at={alert.since} />
            </span>
          )}
        </p>
        {because && <p class="clamp soft small">{safe(because)}</p>}
        {what.includes('target') && (
          <Link to={`/dead-letters?source=${encodeURIComponent(source)}`} class="thing-more">
            Their errors
          </Link>
        )}
      </div>
      <CopyCommand command={command} />
    </li>
  )
}
