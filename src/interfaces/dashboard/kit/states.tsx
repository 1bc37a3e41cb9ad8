import type { ComponentChildren } from 'preact'
import type { ApiError } from '../api.ts'
import { Button } from './button.tsx'
import { CopyCommand } from './copy.tsx'
import { Prose } from './text.tsx'
import { Icon, type IconName } from './icon.tsx'

/** Nothing to show, and what to do about it: a command to copy, or a button (clear the filters). */
export function Empty(props: {
  title: string
  children?: ComponentChildren
  command?: string
  icon?: IconName
  action?: { label: string; onClick: () => void }
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={props.icon ?? 'check'} size={20} />
      </span>
      <p class="empty-title">{props.title}</p>
      {props.children && <div class="empty-text">{props.children}</div>}
      {props.command && <CopyCommand command={props.command} />}
      {props.action && <Button onClick={props.action.onClick}>{props.action.label}</Button>}
    </div>
  )
}

/** Grey lines where the content will be, so that nothing jumps. */
export function Loading({ lines = 4, what = 'Loading' }: { lines?: number; what?: string }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">{what} …</span>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} class="loading-line" aria-hidden="true" />
      ))}
    </div>
  )
}

/** It could not be fetched: the server's sentence, and a way to ask again. */
export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <p>
        <Prose text={error.message} />
        {error.isTransient && <span class="faint"> It is tried again every few seconds.</span>}
      </p>
      {retry && (
        <Button size="small" icon="again" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** The usual order of things: failed without anything to show, still loading, or there. */
export function Loaded<T>(props: {
  of: { data: T | undefined; error: ApiError | null; reload: () => void }
  lines?: number
  children: (data: T) => ComponentChildren
}) {
  const { data, error, reload } = props.of
  if (data === undefined && error) return <Failure error={error} retry={reload} />
  if (data === undefined) return <Loading lines={props.lines ?? 4} />
  return (
    <>
      {error && <Failure error={error} retry={reload} />}
      {props.children(data)}
    </>
  )
}
