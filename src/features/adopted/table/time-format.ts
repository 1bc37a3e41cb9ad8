import type { Cell } from './make-row.ts'
import { type TimeFormat, timeFormatOf } from './timestamps.ts'

/** What a column can hold. `seconds`: whole numbers, and none so big as today's milliseconds. */
export type TimeStorage = 'text' | 'integer' | 'seconds' | 'number' | 'either'

const ISO = timeFormatOf('2000-01-01T00:00:00.000Z')!
const DEFAULT_FORMATS: Readonly<Record<TimeStorage, TimeFormat>> = {
  text: ISO,
  either: ISO,
  integer: timeFormatOf(1_700_000_000_000)!,
  seconds: timeFormatOf(1_700_000_000)!,
  number: { kind: 'epoch', unit: 's', digits: 3, isText: false },
}

/** The form to write a time in: that of others in the column, else of the other times in the row, else the usual one. */
export function timeFormatFor(
  storage: TimeStorage,
  column: readonly Cell[],
  row: readonly Cell[],
): TimeFormat {
  const found = firstFormat(storage, column) ?? firstFormat(storage, row)
  return found ?? DEFAULT_FORMATS[storage]
}

function firstFormat(storage: TimeStorage, cells: readonly Cell[]): TimeFormat | undefined {
  for (const cell of cells) {
    const format = timeFormatOf(cell)
    const fitted = format && fitToStorage(format, storage)
    if (fitted) return fitted
  }
  return undefined
}

/** As the column can hold it. A number in one for text becomes text; text has no place in one for numbers. */
function fitToStorage(format: TimeFormat, storage: TimeStorage): TimeFormat | null {
  if (storage === 'text' || storage === 'either') return format
  if (format.kind !== 'epoch' || (storage === 'seconds' && format.unit !== 's')) return null
  return storage === 'number' ? format : { ...format, digits: 0 }
}
