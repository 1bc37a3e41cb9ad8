import type { ComponentChildren } from 'preact'

export type Column<T> = {
  readonly head: string
  cell(row: T): ComponentChildren
  /** Numbers stand at the end of their cell. */
  readonly isNumber?: boolean
  /** The one that names the row: first in the card, without a label. */
  readonly isTitle?: boolean
  /** Takes what is left of the width; in the card the whole of it, without a label. */
  readonly isWide?: boolean
  /** Needs no label in the card, such as a bar. */
  readonly isPlain?: boolean
  /** Left out where there is little room. */
  readonly isExtra?: boolean
  /** For the eye an empty heading (a column of buttons); the word is there for a reader. */
  readonly isHeadHidden?: boolean
}

/**
 * A list of rows; on a narrow page each row is a card. Rows carry `data-row`, which is what the keyboard walks by;
 * the first link in a row is what Enter opens.
 */
export function Table<T>(props: {
  /** What it lists, for screen readers. */
  caption: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  rowKey: (row: T) => string | number
  /** Marks a row that asks for a person. */
  isTrouble?: (row: T) => boolean
}) {
  // The roles are repeated: for browsers a table that is laid out as cards is not a table.
  return (
    <div class="table-frame">
      <table class="table" role="table">
        <caption class="visually-hidden">{props.caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {props.columns.map((column) => (
              <th key={column.head} role="columnheader" scope="col" class={classOf(column)}>
                {column.isHeadHidden ? (
                  <span class="visually-hidden">{column.head}</span>
                ) : (
                  column.head
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {props.rows.map((row) => (
            <tr
              key={props.rowKey(row)}
              role="row"
              data-row
              tabIndex={-1}
              class={props.isTrouble?.(row) ? 'is-trouble' : undefined}
            >
              {props.columns.map((column) => (
                <td key={column.head} role="cell" class={classOf(column)} data-label={column.head}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function classOf<T>(column: Column<T>): string | undefined {
  const kinds = [
    column.isNumber && 'is-number',
    column.isTitle && 'is-title',
    column.isWide && 'is-wide',
    column.isPlain && 'is-plain',
    column.isExtra && 'is-extra',
    column.isHeadHidden && 'is-bare',
  ].filter(Boolean)
  return kinds.length > 0 ? kinds.join(' ') : undefined
}

/** A column of numbers or ages. */
export function numbers<T>(
  head: string,
  cell: (row: T) => ComponentChildren,
  isExtra = false,
): Column<T> {
  return { head, cell, isNumber: true, isExtra }
}
