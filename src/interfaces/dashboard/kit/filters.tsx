import { useEffect, useRef, useState } from 'preact/hooks'
import {
  isFiltered,
  readFilters,
  writeFilters,
  type FilterSpec,
  type FiltersOf,
} from '../model/filters.ts'
import { navigate, useLocation } from '../router.ts'
import { Button } from './button.tsx'
import { Icon } from './icon.tsx'

/** The filters of a page, kept in its address: a link, a reload and Back all bring them back. */
export function useFilters<S extends FilterSpec>(spec: S) {
  const { path, query } = useLocation()
  const filters = readFilters(spec, query)
  return {
    filters,
    isFiltered: isFiltered(spec, filters),
    set: (change: Partial<FiltersOf<S>>, { replace = false } = {}) =>
      navigate(path + writeFilters(spec, { ...filters, ...change }), { replace }),
    clear: () => navigate(path),
  }
}

export type FilterField = {
  readonly name: string
  readonly label: string
  readonly kind: 'search' | 'choice' | 'many'
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  readonly placeholder?: string
}

/** The fields for them. A search follows while one types; one field with `search` gets the `/` key. */
export function Filters<S extends FilterSpec>(props: {
  label: string
  fields: readonly FilterField[]
  state: ReturnType<typeof useFilters<S>>
}) {
  const values = props.state.filters as Readonly<Record<string, string | readonly string[]>>
  const set = (name: string, value: string | readonly string[], replace = false) =>
    props.state.set({ [name]: value } as Partial<FiltersOf<S>>, { replace })
  return (
    <form
      class="row"
      role="search"
      aria-label={props.label}
      onSubmit={(event) => event.preventDefault()}
    >
      {props.fields.map((field) => {
        const value = values[field.name] ?? ''
        if (field.kind === 'many') {
          return <Many key={field.name} field={field} value={value as string[]} set={set} />
        }
        if (field.kind === 'choice') {
          return <Choice key={field.name} field={field} value={value as string} set={set} />
        }
        return <Search key={field.name} field={field} value={value as string} set={set} />
      })}
      {props.state.isFiltered && (
        <Button kind="quiet" size="small" icon="cross" onClick={props.state.clear}>
          Clear filters
        </Button>
      )}
    </form>
  )
}

type Setter = (name: string, value: string | readonly string[], replace?: boolean) => void

function Search({ field, value, set }: { field: FilterField; value: string; set: Setter }) {
  const [typed, setTyped] = useState(value)
  const sent = useRef(value)
  useEffect(() => {
    // Back, or a cleared filter.
    if (value !== sent.current) setTyped((sent.current = value))
  }, [value])
  useEffect(() => {
    if (typed === sent.current) return
    const timer = setTimeout(() => set(field.name, (sent.current = typed), true), 250)
    return () => clearTimeout(timer)
  }, [typed])
  return (
    <label class="field field-search">
      <span class="visually-hidden">{field.label}</span>
      <Icon name="search" size={14} />
      <input
        type="search"
        data-search
        value={typed}
        placeholder={field.placeholder ?? field.label}
        maxLength={200}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </label>
  )
}

function Choice({ field, value, set }: { field: FilterField; value: string; set: Setter }) {
  return (
    <label class="field">
      <span>{field.label}</span>
      <select value={value} onChange={(event) => set(field.name, event.currentTarget.value)}>
        {(field.options ?? []).map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  )
}

function Many({ field, value, set }: { field: FilterField; value: string[]; set: Setter }) {
  const toggled = (one: string) =>
    value.includes(one) ? value.filter((other) => other !== one) : [...value, one]
  return (
    <fieldset class="row chips">
      <legend class="visually-hidden">{field.label}</legend>
      {(field.options ?? []).map((option) => (
        <button
          key={option.value}
          type="button"
          class="chip"
          aria-pressed={value.includes(option.value)}
          onClick={() => set(field.name, toggled(option.value))}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  )
}
