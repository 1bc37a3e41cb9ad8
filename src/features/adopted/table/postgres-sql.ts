import { moment } from '../../../core/store/postgres/database.ts'
import { storable } from '../../../core/store/postgres/strip-nul.ts'
import type { Assignment } from './assignments.ts'
import {
  type Field,
  hasFunctions,
  labelled,
  mappedFields,
  TIME_FIELDS,
  type TimeField,
} from './columns.ts'
import type { Mapping } from '../mapping.ts'
import { type Form, writeMoment } from './timestamps.ts'
import type { PostgresCatalogue, PostgresColumn } from './postgres-catalogue.ts'
import { momentIn } from './postgres-timestamps.ts'
import type { AdoptedRow } from './table.ts'

/** The values of one statement, each with its place in it. */
export class Values {
  readonly all: unknown[] = []
  readonly #timeZone: string
  #zone: string | undefined

  constructor(timeZone: string) {
    this.#timeZone = timeZone
  }

  bind(value: unknown): string {
    this.all.push(value)
    return `$${this.all.length}`
  }

  get zone(): string {
    return (this.#zone ??= `${this.bind(this.#timeZone)}::text`)
  }
}

const EMPTY = String.raw`^\s*(\{\s*\}|null)?\s*$`

/** The parts that statements on a table are made of. */
export class PostgresSql {
  readonly table: string
  readonly id: PostgresColumn
  readonly #mapping: Mapping
  readonly #catalogue: PostgresCatalogue

  constructor(mapping: Mapping, catalogue: PostgresCatalogue) {
    this.#mapping = mapping
    this.#catalogue = catalogue
    this.table = catalogue.table
    this.id = catalogue.columns.get('id')!
  }

  /** As text; NULL where it is not mapped. */
  text(field: Field): string {
    const column = this.#catalogue.columns.get(field)
    return column ? `${column.quoted}::text` : 'NULL::text'
  }

  moment(field: TimeField, values: Values): string {
    const column = this.#catalogue.columns.get(field)
    return column ? momentIn(column.quoted, column.kind, () => values.zone) : 'NULL::float8'
  }

  /** A status that is one of these, compared in its own type: an index on it is of use. */
  isOneOf(spellings: readonly string[], values: Values): string {
    const { quoted, kind, base, castTo } = this.#catalogue.columns.get('status')!
    const list = `${values.bind(spellings.map(storable))}::text[]`
    const isOwnType = kind === 'enum' || base === 'citext'
    return isOwnType
      ? `${quoted}::${castTo} = ANY (${list}::${castTo}[])`
      : `${quoted} = ANY (${list})`
  }

  isId(key: string, values: Values, is: '=' | '<' | '>' = '='): string {
    return `${this.id.quoted} ${is} ${values.bind(key)}::${this.id.castTo}`
  }

  /**
   * Each mapped column as `c:` and its field, exactly as it stands there; the moments as `m:`. For the user's functions
   * each that may be read as `u:` and its number, as their own programs get it.
   */
  columns(values: Values): string {
    const { columns } = this.#catalogue
    const cells = [...columns.keys()].map((field) => `${this.#cell(field)} AS "c:${field}"`)
    const moments = TIME_FIELDS.filter((field) => columns.has(field)).map(
      (field) => `${this.moment(field, values)} AS "m:${field}"`,
    )
    const user = this.userColumns().map(({ quoted }, at) => `${quoted} AS "u:${at}"`)
    const says = `coalesce(${this.text('checkpoint')} !~* '${EMPTY}', false) AS "c:says"`
    return [...cells, ...moments, ...user, says].join(', ')
  }

  /** Without a function of the user's nobody looks at more than what is mapped, nor at a checkpoint's content. */
  userColumns(): readonly PostgresColumn[] {
    if (hasFunctions(this.#mapping)) return this.#catalogue.readable
    const mapped = [...this.#catalogue.columns].filter(([field]) => field !== 'checkpoint')
    return [...new Set(mapped.map(([, column]) => column))]
  }

  /** Nothing that was read of the row has changed since, and it is the only one of its id. */
  stillIs(row: AdoptedRow, values: Values): string {
    const { quoted } = this.id
    const id = `${values.bind(row.key)}::${this.id.castTo}`
    const conditions = [
      `${quoted} = ${id}`,
      `(SELECT count(*) FROM ${this.table} AS other WHERE other.${quoted} = ${id}) = 1`,
    ]
    for (const [field, name] of mappedFields(this.#mapping)) {
      const was = values.bind(row.stamp[name] ?? null)
      conditions.push(`${this.#cell(field)} IS NOT DISTINCT FROM ${was}::text`)
    }
    return conditions.join(' AND ')
  }

  /** `column = value`. The form is that of times in a column for text or numbers. */
  set(field: Field, assignment: Assignment, form: Form, values: Values): string {
    const column = this.#catalogue.columns.get(field)!
    if (assignment.kind === 'moment') {
      return `${column.quoted} = ${this.#time(assignment.at, column, form, values)}`
    }
    const { kind, value } = assignment
    const raw = kind === 'restored' || value === null ? value : fitted(String(value), field, column)
    return `${column.quoted} = ${values.bind(raw)}::${column.castTo}`
  }

  #time(at: number, { kind, castTo }: PostgresColumn, form: Form, values: Values): string {
    switch (kind) {
      case 'timestamptz':
        return moment(values.bind(at))
      case 'timestamp':
      case 'date':
        return `((${moment(values.bind(at))}) AT TIME ZONE ${values.zone})::${castTo}`
      default:
        return `${values.bind(String(writeMoment(at, form, this.#mapping.timeZone)))}::${castTo}`
    }
  }

  /** As it is kept and compared: of a checkpoint, which may be long, enough to see that it is another. */
  #cell(field: Field): string {
    const text = this.text(field)
    return field === 'checkpoint' ? `length(${text}) || ':' || hashtextextended(${text}, 0)` : text
  }
}

/** As the column takes it. What was said of an error may be cut, a word may not. */
function fitted(text: string, field: Field, { kind, labels, lengthMax }: PostgresColumn): string {
  if (labels) return labelled(text, labels) ?? text
  const plain = storable(text)
  if (kind === 'json') return JSON.stringify(plain)
  const isCut = field === 'error' && lengthMax !== null
  return isCut ? Array.from(plain).slice(0, lengthMax).join('') : plain
}
