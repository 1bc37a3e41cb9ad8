import type { ComponentChildren } from 'preact'
import { useEffect, useId, useReducer, useRef, useState } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { curlOf } from '../model/curl.ts'
import { formatNumber, safe } from '../model/format.ts'
import { apiUrl } from '../router.ts'
import { useHasRole } from '../session.ts'
import type { ActionResult, AllowedAction } from '../shapes.ts'
import {
  bodyOf,
  commandOf,
  isConfirmed,
  mustTypeConfirmation,
  nextState,
  type ActionState,
  type Input,
} from './action-state.ts'
import { PreviewFailedView, PreviewView, ResultView } from './action-views.tsx'
import { Button } from './button.tsx'
import { CopyButton, CopyCommand } from './copy.tsx'
import { loadPreview, newPreviewOf, perform, undoAll } from './perform.ts'
import { Loading } from './states.tsx'

/** Previews an action, asks for confirmation, applies it, shows its result and offers the undo. */
export function ActionDialog(props: {
  action: AllowedAction
  onClose: () => void
  /** Called after something was changed or reverted. */
  onDone: () => void
}) {
  const { action, onClose, onDone } = props
  const title = useId()
  const canAct = useHasRole(action.role)
  const [input, setInput] = useState<Input>(() =>
    Object.fromEntries(action.fields.map(({ name, initial }) => [name, initial])),
  )
  const [because, setBecause] = useState('')
  const [typed, setTyped] = useState('')
  const [state, dispatch] = useReducer(nextState, { at: 'loading' } as ActionState)
  const dialog = useModal('result' in state)
  const lastRequest = useRef(0)

  const settle = async (request: Promise<ActionResult>, use: (result: ActionResult) => void) => {
    try {
      use(await request)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      dispatch({ type: 'failed', error, newPreview: newPreviewOf(error) })
    }
  }
  const load = () => {
    const request = ++lastRequest.current
    dispatch({ type: 'load' })
    // A preview of other field values than the current ones is dropped.
    void settle(loadPreview(action, input), (result) => {
      if (request === lastRequest.current) dispatch({ type: 'loaded', result })
    })
  }
  useEffect(() => {
    const timer = setTimeout(load, action.fields.length > 0 ? 150 : 0)
    return () => clearTimeout(timer)
  }, [input])

  const content = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // The button that had the focus was removed or disabled: the focus moves to the result.
    if (state.at !== 'loading' && !dialog.current?.contains(document.activeElement))
      content.current?.focus()
  }, [state.at])

  const close = () => dialog.current?.close()
  const shown = 'shown' in state ? state.shown : null
  const result = 'result' in state ? state.result : null
  const body = shown && bodyOf(action, input, shown, because)
  const isReady = canAct && shown !== null && shown.count > 0
  const isAgreed = isReady && isConfirmed(action, shown.count, typed)
  const act = (event: Event) => {
    event.preventDefault()
    if (state.at !== 'preview' || !body || !isAgreed) return
    dispatch({ type: 'act' })
    void settle(perform(action, body), (done) => {
      dispatch({ type: 'acted', result: done })
      onDone()
    })
  }
  const undo = () => {
    if (!result?.undo) return
    void undoAll(result.undo, (steps, isOver) => {
      dispatch({ type: 'undo', steps, isOver })
      if (isOver) onDone()
    })
  }
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={title}
      onClose={onClose}
      onClick={(event) => isFollowedLink(event) && close()}
    >
      <form class="dialog-body" onSubmit={act}>
        <DialogHead id={title} title={safe(action.title)} close={close} />
        <div ref={content} class="dialog-content" tabIndex={-1}>
          {!result && <p class="soft">{action.about}</p>}
          {!result &&
            action.fields.map((field) => (
              <ActionField key={field.name} field={field} input={input} onInput={setInput} />
            ))}
          {state.at === 'loading' && <Loading lines={3} what="Loading the preview" />}
          {state.at === 'no-preview' && <PreviewFailedView error={state.error} retry={load} />}
          {shown && (
            <PreviewView
              action={action}
              shown={shown}
              notice={state.at === 'preview' ? state.notice : null}
            />
          )}
          {'result' in state && <ResultView state={state} undo={undo} />}
          {isReady && action.takesReason && (
            <TextField value={because} onInput={setBecause} maxLength={500}>
              Why <span class="faint">(optional; it goes into the history)</span>
            </TextField>
          )}
          {isReady && mustTypeConfirmation(action, shown.count) && (
            <TextField value={typed} onInput={setTyped}>
              Type <code class="keys">{safe(action.confirm.text)}</code> to confirm
              {!action.confirm.always && `: it is about ${formatNumber(shown.count)}`}
            </TextField>
          )}
        </div>
        <footer class="row dialog-foot">
          {shown && <CopyCall action={action} command={commandOf(shown, because)} body={body} />}
          <div class="row dialog-buttons">
            <Button onClick={close}>{result ? 'Close' : 'Not now'}</Button>
            {isReady && (
              <Button
                type="submit"
                kind={action.isDestructive ? 'danger' : 'primary'}
                isBusy={state.at === 'acting'}
                isDisabled={!isAgreed}
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

export function DialogHead(props: { id: string; title: string; close: () => void }) {
  return (
    <header class="row dialog-head">
      <h2 id={props.id}>{props.title}</h2>
      <Button kind="quiet" size="small" icon="cross" label="Close" onClick={props.close} />
    </header>
  )
}

/** A link to another page was followed, which the dialog would cover. */
function isFollowedLink({ target, defaultPrevented }: MouseEvent): boolean {
  return defaultPrevented && target instanceof Element && target.closest('a[href]') !== null
}

/** A value that the preview depends on. */
function ActionField(props: {
  field: AllowedAction['fields'][number]
  input: Input
  onInput: (input: Input) => void
}) {
  const { name, label, initial, max } = props.field
  const set = (value: number | boolean) => props.onInput({ ...props.input, [name]: value })
  if (typeof initial === 'boolean') {
    return (
      <label class="row soft">
        <input
          type="checkbox"
          checked={props.input[name] === true}
          onChange={(event) => set(event.currentTarget.checked)}
        />
        <span>{label}</span>
      </label>
    )
  }
  return (
    <label class="field field-wide">
      <span>{label}</span>
      <input
        type="number"
        required
        min={0}
        max={max ?? undefined}
        step={1}
        value={String(props.input[name])}
        onInput={({ currentTarget: field }) => {
          if (field.checkValidity()) set(field.valueAsNumber)
        }}
      />
    </label>
  )
}

function TextField(props: {
  value: string
  onInput: (value: string) => void
  maxLength?: number
  children: ComponentChildren
}) {
  return (
    <label class="field field-wide">
      <span>{props.children}</span>
      <input
        type="text"
        value={props.value}
        maxLength={props.maxLength}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </label>
  )
}

/** The same action as a command and as curl; the command line does not have all of them. */
function CopyCall(props: { action: AllowedAction; command: string; body: unknown }) {
  const { method, path } = props.action.call
  const call = { method, path: apiUrl(path), body: props.body }
  if (props.command !== '') return <CopyCommand command={props.command} call={call} />
  const label = 'Copy as curl'
  return <CopyButton text={() => curlOf(call, location.origin)} label={label} word={label} />
}

/**
 * Opens with the first render. The browser keeps the focus inside and returns it at the end; after an action the focus
 * goes to the heading of the page, since the button that opened the dialog may be gone.
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
