import type { Cell } from './make-row.ts'
import { type Form, formOf } from './timestamps.ts'

/** What a column can hold. `seconds`: whole numbers, and none so big as today's milliseconds. */
export type Storage = 'text' | 'integer' | 'seconds' | 'number' | 'either'

const ISO = formOf('2000-01-01T00:00:00.000Z')!
const DEFAULTS: Readonly<Record<Storage, Form>> = {
  text: ISO,
  either: ISO,
  integer: formOf(1_700_000_000_000)!,
  seconds: formOf(1_700_000_000)!,
  number: { kind: 'epoch', unit: 's', digits: 3, isText: false },
}

/** The form to write a time in: that of others in the column, else of the other times in the row, else the usual one. */
export function formFor(storage: Storage, column: readonly Cell[], row: readonly Cell[]): Form {
  const found = firstForm(storage, column) ?? firstForm(storage, row)
  return found ?? DEFAULTS[storage]
}

function firstForm(storage: Storage, cells: readonly Cell[]): Form | undefined {
  for (const cell of cells) {
    const form = formOf(cell)
    const fitting = form && fitted(form, storage)
    if (fitting) return fitting
  }
  return undefined
}

/** As the column can hold it. A number in one for text becomes text; text has no place in one for numbers. */
function fitted(form: Form, storage: Storage): Form | null {
  if (storage === 'text' || storage === 'either') return form
  if (form.kind !== 'epoch' || (storage === 'seconds' && form.unit !== 's')) return null
  return storage === 'number' ? form : { ...form, digits: 0 }
}
