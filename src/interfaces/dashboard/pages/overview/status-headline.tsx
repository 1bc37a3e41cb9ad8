import { ActionButtons } from '../../kit/action-host.tsx'
import { Icon, type IconName } from '../../kit/icon.tsx'
import { Link } from '../../kit/link.tsx'
import { splitSummary } from '../../model/overview.ts'
import type { Tone } from '../../model/status-style.ts'
import { useHasRole } from '../../session.ts'
import type { Overview } from '../../shapes.ts'

const STATE_STYLES: Readonly<Record<Overview['state'], { tone: Tone; icon: IconName }>> = {
  stuck: { tone: 'bad', icon: 'unlink' },
  attention: { tone: 'warn', icon: 'bell' },
  well: { tone: 'good', icon: 'check' },
  idle: { tone: 'quiet', icon: 'pause' },
}

/** "Is anything stuck?", and the one button when something is. */
export function StatusHeadline({ overview }: { overview: Overview }) {
  const canAct = useHasRole('operator')
  const { tone, icon } = STATE_STYLES[overview.state]
  const { line, detail } = splitSummary(overview)
  return (
    <header class={`answer tone-${tone}`}>
      <span class="answer-icon">
        <Icon name={icon} size={26} />
      </span>
      <div class="answer-words">
        <h1 tabIndex={-1}>Is anything stuck?</h1>
        <p aria-live="polite">
          <strong class="answer-line">{line}</strong>
          {detail && <span class="answer-detail">{detail}</span>}
        </p>
      </div>
      {canAct ? (
        <ActionButtons actions={overview.actions} size="large" />
      ) : (
        overview.actions.length > 0 && <Link to="/recovery">What would be recovered</Link>
      )}
    </header>
  )
}
