import { useEffect, useState } from 'preact/hooks'
import { formatNumber, plural, safe, shortId } from '../model/format.ts'
import type { ActionResult, AllowedAction, Target } from '../shapes.ts'
import { changesOf, type ActionState, type UndoStep } from './action-state.ts'
import { Button } from './button.tsx'
import { Changes, Processes } from './changes.tsx'
import { CopyCommand } from './copy.tsx'
import { Icon } from './icon.tsx'
import { Link } from './link.tsx'
import { loadSample } from './perform.ts'
import { Prose, Text } from './text.tsx'

/** Without a preview there is nothing to confirm. */
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

/** What an action would change: the exact count, and the first changes. */
export function PreviewView(props: {
  action: AllowedAction
  shown: ActionResult
  notice: string | null
}) {
  const { action, shown, notice } = props
  const { changes, more, kept, moreKept } = changesOf(shown)
  return (
    <>
      {notice !== null && (
        <div class="banner tone-warn" role="alert">
          <Icon name="warning" />
          <p>{safe(notice)}</p>
        </div>
      )}
      <p class="row dialog-said" role="status">
        <bdi>
          <Prose text={shown.summary} />
        </bdi>
      </p>
      {changes.length > 0 && <Changes of={changes} more={more} />}
      <Processes of={shown.processes ?? []} />
      {changes.length === 0 && shown.count > 0 && <Sample action={action} />}
      <RunList of={shown.runs ?? []} />
      {kept.length > 0 && (
        <details class="soft">
          <summary>
            {shown.resumable
              ? `${plural(kept.length, 'run')} kept: they can be resumed`
              : `Needs a decision: ${formatNumber(kept.length + moreKept)}`}
          </summary>
          <Changes of={kept} more={moreKept} />
        </details>
      )}
    </>
  )
}

/** A few of the targets behind a count. It is left out if it cannot be loaded. */
function Sample({ action }: { action: AllowedAction }) {
  const [targets, setTargets] = useState<readonly Target[]>([])
  useEffect(() => {
    loadSample(action).then(setTargets, () => {})
  }, [action])
  if (targets.length === 0) return null
  return (
    <div>
      <p class="soft small">For example:</p>
      <ul class="stack">
        {targets.map(({ id, key, lastError }) => (
          <li key={id}>
            <Text value={key} clip mono />
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

const RUNS_MAX = 50

/** The runs of dead letters that are planned again, and which of them refuse. */
function RunList({ of }: { of: NonNullable<ActionResult['runs']> }) {
  if (of.length === 0) return null
  const left = of.length - RUNS_MAX
  return (
    <ul class="list">
      {of.slice(0, RUNS_MAX).map(({ run, targets, refused }) => (
        <li key={run} class="row">
          <Link to={`/runs/${run}`} class="entry-what">
            run {shortId(run)}
          </Link>
          {refused === null ? plural(targets, 'target') : <Prose text={`refused: ${refused}`} />}
        </li>
      ))}
      {left > 0 && <li class="faint">And {plural(left, 'more run')}.</li>}
    </ul>
  )
}

/** What an action changed, and its undo. */
export function ResultView(props: {
  state: Extract<ActionState, { readonly result: ActionResult }>
  undo: () => void
}) {
  const { state, undo } = props
  const { count, summary, runs = [], ...result } = state.result
  const { changes, more } = changesOf(state.result)
  return (
    <>
      <p class="row dialog-said" role="status">
        <span class={`disc ${count > 0 ? 'tone-good' : 'tone-quiet'}`}>
          <Icon name={count > 0 ? 'check' : 'dash'} size={20} />
        </span>
        <bdi>
          <Prose text={summary} />
        </bdi>
      </p>
      {changes.length > 0 && <Changes of={changes} more={more} />}
      <Processes of={result.processes ?? []} />
      <RunList of={runs} />
      {result.undo && (
        <div class="row undo">
          {'steps' in state ? (
            <UndoProgress steps={state.steps} />
          ) : (
            <Button icon="undo" onClick={undo}>
              {result.undo.label}
            </Button>
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
  const isOver = made.length === steps.length
  const of = `${formatNumber(isOver ? made.length - failed.length : made.length)} of ${formatNumber(steps.length)}`
  return (
    <div class="undo strong" role="status">
      <p>
        {!isOver ? `Reverting: ${of} …` : failed.length === 0 ? 'Reverted.' : `${of} reverted.`}
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
