import type { ComponentChildren } from 'preact'
import { useEffect, useId } from 'preact/hooks'

/** A part of a page: a heading, something beside it, and the content in a frame. */
export function Section(props: {
  title: string
  /** A word beside the title: a count, an age. */
  note?: ComponentChildren
  /** At the end of the heading: buttons, links. */
  aside?: ComponentChildren
  children: ComponentChildren
  /** Without the frame, for content that brings its own. */
  isBare?: boolean
  /** Makes it a place that links lead to. */
  id?: string
}) {
  const heading = useId()
  const { id } = props
  return (
    <section class="section" aria-labelledby={heading} id={id} tabIndex={id ? -1 : undefined}>
      <header class="row section-head">
        <h2 id={heading}>{props.title}</h2>
        {props.note !== undefined && <span class="faint small">{props.note}</span>}
        {props.aside !== undefined && <div class="row small to-end">{props.aside}</div>}
      </header>
      <div class={props.isBare ? undefined : 'frame'}>{props.children}</div>
    </section>
  )
}

/** The head of a page, and what the tab is called. */
export function PageHead(props: {
  title: string
  /** Above the title: where one is. */
  above?: ComponentChildren
  children?: ComponentChildren
  actions?: ComponentChildren
}) {
  useTitle(props.title)
  return (
    <header class="row page-head">
      <div class="fill tight">
        {props.above && <p class="faint small">{props.above}</p>}
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.children && <div class="soft">{props.children}</div>}
      </div>
      {props.actions && <div class="row">{props.actions}</div>}
    </header>
  )
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === 'Unstuck' ? title : `${title} · Unstuck`
  }, [title])
}

/** Names and values, for the facts of one thing. `wide`: long values, each in a row of its own. */
export function Facts(props: {
  of: readonly (readonly [string, ComponentChildren])[]
  wide?: readonly (readonly [string, ComponentChildren])[]
}) {
  const { of, wide = [] } = props
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      {wide.map(([name, value]) => (
        <div key={name} class="is-wide">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
