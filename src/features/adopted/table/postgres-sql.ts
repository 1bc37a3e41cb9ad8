import type { Millis } from '../../../core/model/time.ts'
import { stripNul } from '../../../core/store/postgres/strip-nul.ts'
import type { PostgresCatalogue, PostgresColumn } from './postgres-catalogue.ts'
import { timestamp } from '../../../core/store/postgres/database.ts'
import {
  type Assignment,
  findLabel,
  fitsInteger,
  hasUserFunctions,
  type MappedField,
  mappedFields,
  TIME_FIELDS,
  type TimeField,
} from './columns.ts'
import type { Mapping } from '../mapping.ts'
import type { RawTime, TimeStorage } from './timestamps.ts'
import { timestampSql } from './postgres-timestamps.ts'
import type { AdoptedRow, RowFilter } from './table.ts'
import type { BoundValues, TableSql } from './user-table.ts'

/** The bound values of one statement. */
export class PostgresValues implements BoundValues {
  readonly all: unknown[] = []
  readonly #timeZone: string
  #boundZone: string | undefined

  constructor(timeZone: string) {
    this.#timeZone = timeZone
  }

  bind(value: unknown): string {
    this.all.push(value)
    return `$${this.all.length}`
  }

  get zone(): string {
    return (this.#boundZone ??= `${this.bind(this.#timeZone)}::text`)
  }
}

const EMPTY_CHECKPOINT = String.raw`^\s*(\{\s*\}|null)?\s*$`

/** Parts of the statements on a table. */
export class PostgresSql implements TableSql<PostgresValues> {
  readonly table: string
  readonly id: string
  readonly byTime: string
  readonly #id: PostgresColumn
  readonly #mapping: Mapping
  readonly #catalogue: PostgresCatalogue

  constructor(mapping: Mapping, catalogue: PostgresCatalogue) {
    this.#mapping = mapping
    this.#catalogue = catalogue
    this.table = catalogue.table
    this.#id = catalogue.columns.get('id')!
    this.id = this.#id.quoted
    // The selected column, so that the time is computed once.
    const { startedAt, createdAt } = mapping.columns
    this.byTime = (startedAt ?? createdAt) === undefined ? '' : '"listedAt" DESC NULLS LAST, '
  }

  values(): PostgresValues {
    return new PostgresValues(this.#mapping.timeZone)
  }

  get key(): string {
    return this.text('id')
  }

  get hasId(): string {
    return `${this.id} IS NOT NULL`
  }

  column(field: MappedField): string {
    return this.#catalogue.columns.get(field)?.quoted ?? 'NULL'
  }

  text(field: MappedField): string {
    const column = this.#catalogue.columns.get(field)
    return column ? `${column.quoted}::text` : 'NULL::text'
  }

  #timestamp(field: TimeField, values: PostgresValues): string {
    const column = this.#catalogue.columns.get(field)
    return column ? timestampSql(column.quoted, column.kind, () => values.zone) : 'NULL::float8'
  }

  #listedAt(values: PostgresValues): string {
    return `coalesce(${this.#timestamp('startedAt', values)}, ${this.#timestamp('createdAt', values)})`
  }

  /** Compares the status in its own type, so that an index can be used. */
  isOneOf(spellings: readonly string[], values: PostgresValues): string {
    const { quoted, kind, base, castTo } = this.#catalogue.columns.get('status')!
    const list = `${values.bind(spellings.map(stripNul))}::text[]`
    const isOwnType = kind !== 'text' || base === 'citext'
    return isOwnType
      ? `${quoted}::${castTo} = ANY (${list}::${castTo}[])`
      : `${quoted} = ANY (${list})`
  }

  /** Users type ids, and the server throws on a wrong type. */
  isValidKey(key: string): boolean {
    return fitsType(this.#id, key)
  }

  isId(key: string, values: PostgresValues, is: '=' | '>' = '='): string {
    return `${this.id} ${is} ${values.bind(key)}::${this.#id.castTo}`
  }

  /** A text that PostgreSQL cannot store matches nothing. */
  isText(field: MappedField, text: string, values: PostgresValues): string {
    return stripNul(text) === text ? `${this.text(field)} = ${values.bind(text)}` : 'false'
  }

  isLike(field: MappedField, pattern: string): string {
    return `${this.text(field)} ILIKE ${pattern}`
  }

  isSince(at: Millis, values: PostgresValues): string {
    return `${this.#listedAt(values)} >= ${values.bind(at)}::float8`
  }

  isTime(field: TimeField, values: PostgresValues): string {
    return `${this.#timestamp(field, values)} IS NOT NULL`
  }

  isAfter({ listedAt, key }: NonNullable<RowFilter['after']>, values: PostgresValues): string {
    const time = `coalesce(${this.#listedAt(values)}, '-infinity')`
    const at = `${values.bind(listedAt ?? -Infinity)}::float8`
    // An id of another type is that of a row of another table: rows of the same time come before it.
    return this.isValidKey(key)
      ? `(${time}, ${this.id}) < (${at}, ${values.bind(key)}::${this.#id.castTo})`
      : `${time} < ${at}`
  }

  /**
   * Each mapped column as `c:FIELD` with its exact value, times also as `t:FIELD` in milliseconds, and the columns for
   * user functions as `u:NUMBER` in their own types.
   */
  columns(values: PostgresValues): string {
    const { columns } = this.#catalogue
    const cells = [...columns.keys()].map((field) => `${this.cell(field)} AS "c:${field}"`)
    const timestamps = TIME_FIELDS.filter((field) => columns.has(field)).map(
      (field) => `${this.#timestamp(field, values)} AS "t:${field}"`,
    )
    const listedAt = this.byTime === '' ? [] : [`${this.#listedAt(values)} AS "listedAt"`]
    const user = this.userColumns().map(({ quoted }, at) => `${quoted} AS "u:${at}"`)
    const hasContent = `coalesce(${this.text('checkpoint')} !~* '${EMPTY_CHECKPOINT}', false) AS "hasCheckpoint"`
    return [...cells, ...timestamps, ...listedAt, ...user, hasContent].join(', ')
  }

  /** Without user functions only mapped columns are read, and not the content of a checkpoint. */
  userColumns(): readonly PostgresColumn[] {
    if (hasUserFunctions(this.#mapping)) return this.#catalogue.readable
    const mapped = [...this.#catalogue.columns].filter(([field]) => field !== 'checkpoint')
    return [...new Set(mapped.map(([, column]) => column))]
  }

  /** No mapped column has changed since it was read, and no other row has the same id. */
  isUnchanged(row: AdoptedRow, values: PostgresValues): string {
    const id = `${values.bind(row.key)}::${this.#id.castTo}`
    const conditions = [
      `${this.id} = ${id}`,
      `(SELECT count(*) FROM ${this.table} AS other WHERE other.${this.id} = ${id}) = 1`,
    ]
    for (const [field, name] of mappedFields(this.#mapping)) {
      const was = values.bind(row.snapshot[name] ?? null)
      conditions.push(`${this.cell(field)} IS NOT DISTINCT FROM ${was}::text`)
    }
    return conditions.join(' AND ')
  }

  /** `column = value`. `time`: what a column of text or numbers gets for a time. */
  assignment(
    field: MappedField,
    to: Assignment,
    time: RawTime | null,
    values: PostgresValues,
  ): string {
    const column = this.#catalogue.columns.get(field)!
    const { quoted, castTo } = column
    if (to.kind !== 'timestamp') {
      const isFitted = to.kind === 'value' && to.value !== null
      const value = isFitted ? fitToColumn(String(to.value), field, column) : to.value
      return `${quoted} = ${values.bind(value)}::${castTo}`
    }
    if (time !== null) return `${quoted} = ${values.bind(String(time))}::${castTo}`
    const at = timestamp(values.bind(to.at))
    return column.kind === 'timestamptz'
      ? `${quoted} = ${at}`
      : `${quoted} = ((${at}) AT TIME ZONE ${values.zone})::${castTo}`
  }

  timeStorage(field: MappedField): TimeStorage | null {
    const { kind, base } = this.#catalogue.columns.get(field) ?? {}
    if (kind === 'text' || kind === 'number') return kind
    return kind === 'integer' ? (base === 'int8' ? 'integer' : 'seconds') : null
  }

  /** The value that is kept and compared; a digest of a checkpoint, which may be long. */
  cell(field: MappedField): string {
    const text = this.text(field)
    return field === 'checkpoint' ? `length(${text}) || ':' || hashtextextended(${text}, 0)` : text
  }
}

/** Adapts a value to the column. An error may be cut, a status may not. */
function fitToColumn(
  text: string,
  field: MappedField,
  { kind, labels, maxLength }: PostgresColumn,
): string {
  if (labels) return findLabel(text, labels) ?? text
  const stripped = stripNul(text)
  if (kind === 'json') return JSON.stringify(stripped)
  const isCut = field === 'error' && maxLength !== null
  return isCut ? Array.from(stripped).slice(0, maxLength).join('') : stripped
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether the column's type accepts this id. */
function fitsType({ kind, bits }: PostgresColumn, key: string): boolean {
  switch (kind) {
    case 'uuid':
      return UUID.test(key)
    case 'integer':
      return fitsInteger(key, bits ?? 64)
    case 'number':
      return /^-?\d{1,100}(\.\d{1,100})?$/.test(key)
    default:
      return stripNul(key) === key
  }
}
