import { useEffect, useState } from 'preact/hooks'
import { type ApiCall, curlOf } from '../model/curl.ts'
import { safe } from '../model/format.ts'
import { Button } from './button.tsx'

/** Copies text and confirms it. Without a clipboard (plain http on another host) it asks to copy by hand. */
export function CopyButton(props: {
  text: string | (() => string)
  label: string
  /** The word on the button; without it there is only the icon. */
  word?: string
}) {
  const [message, setMessage] = useState<string | null>(null)
  useEffect(() => {
    if (message === null) return
    const timer = setTimeout(() => setMessage(null), 2_000)
    return () => clearTimeout(timer)
  }, [message])
  const copy = () => {
    const text = typeof props.text === 'string' ? props.text : props.text()
    copyText(text).then(
      () => setMessage('Copied'),
      () => setMessage('Not allowed here: mark it by hand'),
    )
  }
  return (
    <span class="row copy">
      <Button
        kind="quiet"
        size="small"
        icon={message === 'Copied' ? 'check' : 'copy'}
        label={props.label}
        onClick={copy}
      >
        {props.word}
      </Button>
      <span class="soft small" role="status">
        {message}
      </span>
    </span>
  )
}

function copyText(text: string): Promise<void> {
  return navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject(new Error())
}

/** A command of the command line to copy and, when the call is given, the same as curl. */
export function CopyCommand({ command, call }: { command: string; call?: ApiCall }) {
  return (
    <div class="command">
      <code class="command-line">
        <span class="faint" aria-hidden="true">
          ${' '}
        </span>
        {safe(command)}
      </code>
      <CopyButton text={command} label="Copy the command" />
      {call && (
        <CopyButton text={() => curlOf(call, location.origin)} label="Copy as curl" word="curl" />
      )}
    </div>
  )
}

/** Raw JSON to copy. */
export function CopyJson({ value }: { value: unknown }) {
  return <CopyButton text={() => JSON.stringify(value, null, 2)} label="Copy as JSON" word="JSON" />
}
