import { useEffect, useState } from 'preact/hooks'
import { formatNumber, plural, safe } from '../model/format.ts'
import type { AllowedAction, Target } from '../shapes.ts'
import { type ActionState, type UndoStep } from './action-state.ts'
import { Button } from './button.tsx'
import { CopyCommand } from './copy.tsx'
import { loadSample } from './perform.ts'
import type { ActionResult } from './action-result.ts'
import { ChangesList } from './changes-list.tsx'
import { Icon } from './icon.tsx'
import { Text } from './text.tsx'

/** No preview, so nothing to agree to. */
export function PreviewFailedView({ error, retry }: { error: string; retry: () => void }) {
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <p>{safe(error)}</p>
      <Button size="small" icon="again" onClick={retry}>
        Try again
      </Button>
    </div>
  )
}

/** What it would do: the exact count, and what it is about. */
export function PreviewView(props: {
  action: AllowedAction
  shown: ActionResult
  notice: string | null
}) {
  const { action, shown, notice } = props
  return (
    <>
      {notice !== null && (
        <div class="banner tone-warn" role="alert">
          <Icon name="warning" />
          <p>{safe(notice)}</p>
        </div>
      )}
      <p class="dialog-said" role="status">
        <Text value={shown.summary} />
      </p>
      {shown.changes.length > 0 && <ChangesList of={shown.changes} cut={shown.omitted.changes} />}
      {shown.changes.length === 0 && shown.count > 0 && <Sample action={action} />}
      {shown.needsAttention.length > 0 && (
        <details class="dialog-left">
          <summary>
            {shown.needsAttention.every((deed) => deed.action === 'resumable')
              ? `${plural(shown.needsAttention.length, 'run')} kept, because there is something to go on from`
              : `${plural(shown.needsAttention.length + shown.omitted.needsAttention, 'thing')} for you to decide`}
          </summary>
          <ChangesList of={shown.needsAttention} cut={shown.omitted.needsAttention} />
        </details>
      )}
    </>
  )
}

/** A few of the targets behind a count. That it could not be fetched is no reason to stop. */
function Sample({ action }: { action: AllowedAction }) {
  const [targets, setTargets] = useState<readonly Target[]>([])
  useEffect(() => {
    loadSample(action).then(setTargets, () => {})
  }, [action])
  if (targets.length === 0) return null
  return (
    <div class="dialog-sample">
      <p class="faint">For example</p>
      <ul>
        {targets.map(({ id, key, lastError }) => (
          <li key={id}>
            <Text value={key} mono />
            {lastError !== null && (
              <span class="faint">
                <Text value={lastError} clip />
              </span>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** What came of it, one by one, and the way back. */
export function ResultView(props: {
  stage: Extract<ActionState, { readonly result: ActionResult }>
  undo: () => void
}) {
  const { stage, undo } = props
  const { result } = stage
  const steps = 'steps' in stage ? stage.steps : null
  return (
    <>
      <p class="dialog-said" role="status">
        <span class={`dialog-outcome ${result.count > 0 ? 'tone-good' : 'tone-quiet'}`}>
          <Icon name={result.count > 0 ? 'check' : 'dash'} size={20} />
        </span>
        <Text value={result.summary} />
      </p>
      {result.changes.length > 0 && (
        <ChangesList of={result.changes} cut={result.omitted.changes} />
      )}
      {result.undo && (
        <div class="dialog-undo">
          {steps === null ? (
            <Button icon="undo" onClick={undo}>
              {result.undo.label}
            </Button>
          ) : (
            <UndoProgress steps={steps} />
          )}
          <CopyCommand command={result.undo.command} />
        </div>
      )}
    </>
  )
}

function UndoProgress({ steps }: { steps: readonly UndoStep[] }) {
  const made = steps.filter((step) => step !== null)
  const failed = made.filter(({ error }) => error !== null)
  const taken = made.length - failed.length
  const isOver = made.length === steps.length
  return (
    <div class="undo-progress" role="status">
      <p>
        {isOver
          ? failed.length === 0
            ? 'Taken back.'
            : `${formatNumber(taken)} of ${formatNumber(steps.length)} taken back.`
          : `Taking back: ${formatNumber(made.length)} of ${formatNumber(steps.length)} …`}
      </p>
      {failed.length > 0 && (
        <ul>
          {failed.map(({ path, error }) => (
            <li key={path}>
              <Text value={error ?? ''} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
