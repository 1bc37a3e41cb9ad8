import { useState } from 'preact/hooks'
import { formatNumber } from '../model/format.ts'
import type { List } from '../resource.ts'
import { navigate } from '../router.ts'
import { PageHead } from './section.tsx'
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
      <span class="disc">
        <Icon name={props.icon ?? 'check'} size={20} />
      </span>
      <p class="strong">{props.title}</p>
      {props.children && <div class="soft">{props.children}</div>}
      {props.command && <CopyCommand command={props.command} />}
      {props.action && <Button onClick={props.action.onClick}>{props.action.label}</Button>}
    </div>
  )
}

/** The page of a run or target that is not in the database. */
export function Missing({ what, id }: { what: string; id: string }) {
  return (
    <>
      <PageHead title={`No such ${what}`} />
      <Empty
        title={`There is no ${what} ${id} in this database.`}
        icon="question"
        action={{ label: 'All runs', onClick: () => navigate('/runs') }}
      >
        It may have been deleted.
      </Empty>
    </>
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

/** Failed without anything to show, still loading, or loaded. `missing`: shown when it does not exist. */
export function Loaded<T>(props: {
  of: { data: T | undefined; error: ApiError | null; reload: () => void }
  lines?: number
  missing?: ComponentChildren
  children: (data: T) => ComponentChildren
}) {
  const { data, error, reload } = props.of
  if (data === undefined && error?.status === 404 && props.missing) return <>{props.missing}</>
  if (data === undefined && error) return <Failure error={error} retry={reload} />
  if (data === undefined) return <Loading lines={props.lines ?? 4} />
  return (
    <>
      {error && <Failure error={error} retry={reload} />}
      {props.children(data)}
    </>
  )
}

/** The rows of a list with what stands in their place while there are none, and the button for more. */
export function ListView<T>(props: {
  list: List<T>
  /** `run`: what a row is; with an `s` below the list. */
  what: string
  /** The filters that narrow it. */
  filters?: { isFiltered: boolean; clear: () => void }
  empty: ComponentChildren
  lines?: number
  children: (rows: readonly T[]) => ComponentChildren
}) {
  const { list, what, filters } = props
  return (
    <Loaded of={{ ...list, data: list.items }} lines={props.lines ?? 6}>
      {(rows) =>
        rows.length > 0 || list.hasMore ? (
          <>
            {props.children(rows)}
            <More list={list} what={what.endsWith('y') ? `${what.slice(0, -1)}ies` : `${what}s`} />
          </>
        ) : filters?.isFiltered ? (
          <NoMatch what={what} clear={filters.clear} />
        ) : (
          props.empty
        )
      }
    </Loaded>
  )
}

export function NoMatch({ what, clear }: { what: string; clear: () => void }) {
  return (
    <Empty
      title={`No ${what} fits these filters.`}
      icon="search"
      action={{ label: 'Clear filters', onClick: clear }}
    />
  )
}

/** Below a list: how many are shown, and the next ones. */
function More<T>({ list, what }: { list: List<T>; what: string }) {
  const [isBusy, setBusy] = useState(false)
  const more = () => {
    setBusy(true)
    void list.more().finally(() => setBusy(false))
  }
  return (
    <div class="foot row">
      <span class="faint" role="status">
        {formatNumber(list.items?.length ?? 0)} shown{list.hasMore ? '' : ', that is all'}
      </span>
      {list.hasMore && (
        <Button size="small" isBusy={isBusy} onClick={more}>
          More {what}
        </Button>
      )}
    </div>
  )
}
