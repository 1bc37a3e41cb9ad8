import { iso } from '../core/model/time.ts'
import type { SavedItem } from '../features/items/store/store.ts'
import { fieldsOf } from './item-columns.ts'
import type { ItemPreview } from './responses.ts'

const FIELDS_MAX = 12
const VALUE_CHARS_MAX = 200

/** Returns an item as a page shows it: the start of each value of its data, as text. */
export function previewItem(item: SavedItem): ItemPreview {
  const { key, url, run, group, dataset, version, changedAt } = item
  const all = [...fieldsOf(item.data)]
  const fields = all.slice(0, FIELDS_MAX).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return { name: cut(name), value: cut(text), isCut: text.length > VALUE_CHARS_MAX }
  })
  const omitted = all.length - fields.length
  return { key, url, run, group, dataset, version, changedAt: iso(changedAt), fields, omitted }
}

function cut(text: string): string {
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX).toWellFormed()}…` : text
}
