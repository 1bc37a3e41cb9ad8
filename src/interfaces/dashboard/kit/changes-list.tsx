import { useState } from 'preact/hooks'
import { number } from '../model/format.ts'
import { safe } from '../model/safe.ts'
import type { Deed } from './action-result.ts'
import { Button } from './button.tsx'
import { evidenceSentences } from './evidence.ts'
import { Icon } from './icon.tsx'
import { Link } from './link.tsx'
import { sentence } from './sentence.ts'
import { Pill } from './status.tsx'
import { Text } from './text.tsx'
import { lookOfAction } from './verdict-style.ts'

const FIRST = 10
const STEP = 100

/** What would be done, or was, each with its reason and, unfolded, what that was made of. `cut`: how many more there are. */
export function Deeds(props: { of: readonly Deed[]; cut?: number; isUnfolded?: boolean }) {
  const { of, cut = 0, isUnfolded = false } = props
  const [shown, setShown] = useState(FIRST)
  const more = of.length - shown
  return (
    <>
      <ul class="deeds">
        {of.slice(0, shown).map((deed, index) => (
          <DeedRow
            key={deed.id + deed.action}
            deed={deed}
            isUnfolded={isUnfolded && !isSameEvidence(deed, of[index - 1])}
          />
        ))}
      </ul>
      {more > 0 && (
        <p class="deeds-more">
          <Button size="small" kind="quiet" icon="down" onClick={() => setShown(shown + STEP)}>
            Show {number(Math.min(more, STEP))} more of {number(of.length + cut)}
          </Button>
        </p>
      )}
      {more <= 0 && cut > 0 && (
        <p class="deeds-more">And {number(cut)} more, which are not listed.</p>
      )}
    </>
  )
}

function DeedRow({ deed, isUnfolded }: { deed: Deed; isUnfolded: boolean }) {
  const { word, icon, tone } = lookOfAction(deed.action)
  const sentences = evidenceSentences(deed.evidence)
  return (
    <li class="deed" data-row tabIndex={-1}>
      <div class="deed-head">
        <Outcome of={deed.outcome} />
        <Pill tone={tone} icon={icon} word={word} />
        {deed.page ? (
          <Link to={deed.page} class="deed-what">
            <Text value={deed.what} />
          </Link>
        ) : (
          <Text value={deed.what} />
        )}
        <Move from={deed.from} to={deed.to} />
      </div>
      {deed.because !== '' && (
        <p class="deed-because">
          <Text value={sentence(deed.because)} />
          {deed.outcome === 'late' && <strong> It was left alone.</strong>}
        </p>
      )}
      {sentences.length > 0 && (
        <details class="deed-evidence" open={isUnfolded}>
          <summary>The evidence</summary>
          <p>
            <Text value={sentences.join(' ')} />
          </p>
        </details>
      )}
    </li>
  )
}

/** Targets of one dead worker have the same to say: once is enough. */
function isSameEvidence(deed: Deed, before: Deed | undefined): boolean {
  const said = (one: Deed) => evidenceSentences(one.evidence).join()
  return before !== undefined && said(deed) === said(before)
}

function Outcome({ of }: { of: Deed['outcome'] }) {
  if (of === 'planned') return null
  return of === 'done' ? (
    <span class="deed-outcome tone-good">
      <Icon name="check" size={14} />
      <span class="visually-hidden">Done: </span>
    </span>
  ) : (
    <span class="deed-outcome tone-warn">
      <Icon name="dash" size={14} />
      <span class="visually-hidden">Not done: </span>
    </span>
  )
}

/** `in progress → planned`; nothing where nothing moves. */
export function Move({ from, to }: { from: string | null; to: string | null }) {
  if (from === to || from === null || to === null) return null
  return (
    <span class="move">
      {words(from)}
      <span aria-hidden="true"> → </span>
      <span class="visually-hidden">becomes</span>
      {words(to)}
    </span>
  )
}

function words(status: string): string {
  return safe(status.replaceAll('_', ' '))
}
