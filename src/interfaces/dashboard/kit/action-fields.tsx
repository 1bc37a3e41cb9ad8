import { safe } from '../model/safe.ts'
import { formatNumber } from '../model/format.ts'
import { mustTypeConfirmation } from './action-state.ts'
import type { AllowedAction } from '../shapes.ts'
import type { Input } from './actions.ts'

/** What has to be known before there can be a preview. */
export function ActionFields(props: {
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
export function Confirmation(props: {
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
