import { act } from '../../kit/act.tsx'
import { clean, recover } from '../../kit/actions.ts'
import { Button } from '../../kit/button.tsx'
import { Icon, type IconName } from '../../kit/icon.tsx'
import { Link } from '../../kit/link.tsx'
import { answerOf, wayOut } from '../../model/overview.ts'
import type { Tone } from '../../model/status-style.ts'
import { useMay } from '../../session.ts'
import type { Overview } from '../../shapes.ts'

const LOOK: Readonly<Record<Overview['state'], { tone: Tone; icon: IconName }>> = {
  stuck: { tone: 'bad', icon: 'unlink' },
  attention: { tone: 'warn', icon: 'bell' },
  well: { tone: 'good', icon: 'check' },
  idle: { tone: 'quiet', icon: 'pause' },
}

/** "Is anything stuck?", and the one button when something is. */
export function Answer({ overview }: { overview: Overview }) {
  const { tone, icon } = LOOK[overview.state]
  const { line, detail } = answerOf(overview)
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
      {overview.state === 'stuck' && <Unstick overview={overview} />}
    </header>
  )
}

function Unstick({ overview }: { overview: Overview }) {
  const may = useMay('operator')
  if (!may) return <Link to="/recovery">What would be recovered</Link>
  return (
    <Button
      kind="primary"
      size="large"
      icon="bolt"
      title="Shows what would be done, and asks before it is"
      onClick={() => act(wayOut(overview.runs) === 'clean' ? clean() : recover())}
    >
      Unstick
    </Button>
  )
}
