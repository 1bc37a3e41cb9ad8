import { PreviewFailedView, PreviewView, ResultView } from './action-views.tsx'
import { useEffect, useId, useReducer, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { formatNumber, safe } from '../model/format.ts'
import { apiUrl } from '../router.ts'
import { useHasRole } from '../session.ts'
import type { AllowedAction } from '../shapes.ts'
import { type ActionState, isConfirmed, mustTypeConfirmation, nextState } from './action-state.ts'
import { bodyOf, commandOf, type Input } from './actions.ts'
import { Button } from './button.tsx'
import { type ApiCall, curlOf } from '../model/curl.ts'
import { CopyButton, CopyCommand } from './copy.tsx'
import { loadPreview, newPreviewOf, perform, undoAll } from './perform.ts'
import { Loading } from './states.tsx'

type ActionDialogProps = {
  readonly action: AllowedAction
  readonly onClose: () => void
  /** Something was changed, or taken back. */
  readonly onDone?: () => void
}

/** Every deed goes this way: what it would do, agreement, what it did, and back again. */
export function ActionDialog({ action, onClose, onDone }: ActionDialogProps) {
  const title = useId()
  const canAct = useHasRole(action.role)
  const [input, setInput] = useState<Input>(() =>
    Object.fromEntries(action.fields.map(({ name, initial }) => [name, initial])),
  )
  const [because, setBecause] = useState('')
  const [typed, setTyped] = useState('')
  const [state, dispatch] = useReducer(nextState, { at: 'looking' } as ActionState)
  const dialog = useModal('result' in state)

  const asked = useRef(0)
  const look = () => {
    const ticket = ++asked.current
    dispatch({ type: 'look' })
    // What was asked for with other fields meanwhile is not what it would do now.
    void answered(loadPreview(action, input), (result) => {
      if (ticket === asked.current) dispatch({ type: 'seen', result })
    })
  }
  const answered = async <T,>(answer: Promise<T>, use: (answer: T) => void) => {
    try {
      use(await answer)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      dispatch({ type: 'failed', error: error, newPreview: newPreviewOf(action, error) })
    }
  }
  useEffect(() => {
    const timer = setTimeout(look, action.fields.length > 0 ? 150 : 0)
    return () => clearTimeout(timer)
  }, [input])

  const content = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // The button that had the focus is gone or was switched off meanwhile: reading goes on with what came of it.
    if (state.at !== 'looking' && !dialog.current?.contains(document.activeElement))
      content.current?.focus()
  }, [state.at])

  const shown = 'shown' in state ? state.shown : null
  const body = shown && bodyOf(action, input, { shown, because })
  const agreed = shown !== null && isConfirmed(action.confirm, shown.count, typed)
  const act = (event: Event) => {
    event.preventDefault()
    if (state.at !== 'preview' || !body || !agreed || shown?.count === 0) return
    dispatch({ type: 'act' })
    void answered(perform(action, body), (result) => {
      dispatch({ type: 'acted', result })
      onDone?.()
    })
  }
  const undo = () => {
    if (!('result' in state) || !state.result.undo) return
    void undoAll(state.result.undo, (steps, isOver) => {
      dispatch({ type: 'undo', steps, isOver })
      if (isOver) onDone?.()
    })
  }

  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={title}
      onClose={onClose}
      onClick={(event) => isFollowedLink(event) && dialog.current?.close()}
    >
      <form class="dialog-body" onSubmit={act}>
        <header class="dialog-head">
          <h2 id={title}>{safe(action.title)}</h2>
          <Button
            kind="quiet"
            size="small"
            icon="cross"
            label="Close"
            onClick={() => dialog.current?.close()}
          />
        </header>
        <div ref={content} class="dialog-content" tabIndex={-1}>
          {!('result' in state) && <p class="soft">{action.about}</p>}
          {!('result' in state) && (
            <ActionFields fields={action.fields} input={input} onInput={setInput} />
          )}
          {state.at === 'looking' && <Loading lines={3} what="Looking what it would do" />}
          {state.at === 'blind' && <PreviewFailedView error={state.error} retry={look} />}
          {shown && (
            <PreviewView
              action={action}
              shown={shown}
              notice={'notice' in state ? state.notice : null}
            />
          )}
          {'result' in state && <ResultView stage={state} undo={undo} />}
          {shown && shown.count > 0 && canAct && (
            <Confirmation
              action={action}
              count={shown.count}
              {...{ typed, setTyped, because, setBecause }}
            />
          )}
        </div>
        <footer class="dialog-foot">
          {shown && (
            <CopyAlternatives
              command={commandOf(shown, because)}
              call={{ ...action.call, path: apiUrl(action.call.path), body }}
            />
          )}
          <div class="dialog-buttons">
            <Button onClick={() => dialog.current?.close()}>
              {'result' in state ? 'Close' : 'Not now'}
            </Button>
            {shown && shown.count > 0 && canAct && (
              <Button
                type="submit"
                kind={action.isDestructive ? 'danger' : 'primary'}
                isBusy={state.at === 'acting'}
                isDisabled={!agreed}
              >
                {action.isCounted && shown.count > 1
                  ? `${action.verb} ${formatNumber(shown.count)}`
                  : action.verb}
              </Button>
            )}
          </div>
        </footer>
      </form>
    </dialog>
  )
}

/** A link to another page was followed: the dialog would be in front of it. */
function isFollowedLink({ target, defaultPrevented }: MouseEvent): boolean {
  return defaultPrevented && target instanceof Element && target.closest('a[href]') !== null
}

/** The same deed by other means; the command line does not have all of them. */
function CopyAlternatives({ command, call }: { command: string; call: ApiCall }) {
  if (command !== '') return <CopyCommand command={command} call={call} />
  return (
    <CopyButton
      text={() => curlOf(call, location.origin)}
      label="Copy as curl"
      word="Copy as curl"
    />
  )
}

/**
 * Opens with its first drawing. The browser keeps the focus inside, and gives it back at the end; to the page's heading
 * when something was done, since the button that it came from is gone with that, or will be in a moment.
 */
function useModal(isDone: boolean) {
  const dialog = useRef<HTMLDialogElement>(null)
  const wasDone = useRef(isDone)
  wasDone.current = isDone
  useEffect(() => {
    dialog.current?.showModal()
    return () =>
      void setTimeout(() => {
        const { activeElement, body } = document
        if (wasDone.current || activeElement === body || activeElement === null)
          document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true })
      })
  }, [])
  return dialog
}

/** What has to be known before there can be a preview. */
function ActionFields(props: {
  fields: AllowedAction['fields']
  input: Input
  onInput: (input: Input) => void
}) {
  const set = (name: string, value: number | boolean) =>
    props.onInput({ ...props.input, [name]: value })
  if (props.fields.length === 0) return null
  return (
    <div class="stack">
      {props.fields.map(({ name, label, initial, max }) =>
        typeof initial === 'boolean' ? (
          <label key={name} class="row soft">
            <input
              type="checkbox"
              checked={props.input[name] === true}
              onChange={(event) => set(name, event.currentTarget.checked)}
            />
            <span>{label}</span>
          </label>
        ) : (
          <label key={name} class="dialog-field">
            <span>{label}</span>
            <input
              type="number"
              required
              min={0}
              max={max ?? undefined}
              step={1}
              value={String(props.input[name])}
              onInput={(event) => {
                if (event.currentTarget.checkValidity())
                  set(name, event.currentTarget.valueAsNumber)
              }}
            />
          </label>
        ),
      )}
    </div>
  )
}

/** A reason, if one may be given; and the words, where a click is not enough. */
function Confirmation(props: {
  action: AllowedAction
  count: number
  typed: string
  setTyped: (text: string) => void
  because: string
  setBecause: (text: string) => void
}) {
  const { action, count, typed, setTyped, because, setBecause } = props
  return (
    <div class="stack">
      {action.takesReason && (
        <label class="dialog-field">
          <span>
            Why <span class="faint">(optional; it goes into the history)</span>
          </span>
          <input
            type="text"
            maxLength={500}
            value={because}
            autocomplete="off"
            onInput={(event) => setBecause(event.currentTarget.value)}
          />
        </label>
      )}
      {mustTypeConfirmation(action.confirm, count) && (
        <label class="dialog-field">
          <span>
            Type <code class="dialog-words">{safe(action.confirm.text)}</code> to agree
            {action.confirm.always
              ? ': this cannot be taken back'
              : `: it is about ${formatNumber(count)}`}
          </span>
          <input
            type="text"
            value={typed}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      )}
    </div>
  )
}
