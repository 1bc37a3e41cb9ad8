import type { ComponentChildren } from 'preact'
import { hrefOf, navigate, useLocation } from '../router.ts'

/** To another page of the dashboard, without loading it anew. A real link: it can be opened in a tab of its own. */
export function Link(props: {
  to: string
  children: ComponentChildren
  class?: string
  title?: string | undefined
  /** Marks it as the page one is on. */
  isCurrent?: boolean
  label?: string
}) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return
    event.preventDefault()
    navigate(props.to)
  }
  return (
    <a
      href={hrefOf(props.to)}
      class={props.class}
      title={props.title}
      aria-label={props.label}
      aria-current={props.isCurrent ? 'page' : undefined}
      onClick={follow}
    >
      {props.children}
    </a>
  )
}

/** A number that leads to the list of what it counts; zero leads nowhere. */
export function CountLink({ count, text, to }: { count: number; text?: string; to: string }) {
  const shown = text ?? count.toLocaleString('en')
  if (count > 0) {
    return (
      <Link to={to} class="count-link">
        {shown}
      </Link>
    )
  }
  return <span class="none">{shown}</span>
}

/** Whether the reader is on this page, for navigation. */
export function useIsAt(path: string): boolean {
  const { path: at } = useLocation()
  return path === '/' ? at === '/' : at === path || at.startsWith(`${path}/`)
}
