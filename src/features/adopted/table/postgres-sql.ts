import { stripNul } from '../../../core/store/postgres/strip-nul.ts'
import type { PostgresCatalogue, PostgresColumn } from './postgres-catalogue.ts'
import { timestamp } from '../../../core/store/postgres/database.ts'
import {
  type Assignment,
  findLabel,
  hasUserFunctions,
  type MappedField,
  mappedFields,
  TIME_FIELDS,
  type TimeField,
} from './columns.ts'
import type { Mapping } from '../mapping.ts'
import { type TimeFormat, formatTimestamp } from './timestamps.ts'
import { timestampSql } from './postgres-timestamps.ts'
import type { AdoptedRow } from './table.ts'

/** The bound values of one statement. */
export class BindValues {
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

  /** The column as text; NULL if it is not mapped. */
  text(field: MappedField): string {
    const column = this.#catalogue.columns.get(field)
    return column ? `${column.quoted}::text` : 'NULL::text'
  }

  timestamp(field: TimeField, values: BindValues): string {
    const column = this.#catalogue.columns.get(field)
    return column ? timestampSql(column.quoted, column.kind, () => values.zone) : 'NULL::float8'
  }

  /** Compares the status in its own type, so that an index can be used. */
  isOneOf(spellings: readonly string[], values: BindValues): string {
    const { quoted, kind, base, castTo } = this.#catalogue.columns.get('status')!
    const list = `${values.bind(spellings.map(stripNul))}::text[]`
    const isOwnType = kind === 'enum' || base === 'citext'
    return isOwnType
      ? `${quoted}::${castTo} = ANY (${list}::${castTo}[])`
      : `${quoted} = ANY (${list})`
  }

  isId(key: string, values: BindValues, is: '=' | '<' | '>' = '='): string {
    return `${this.id.quoted} ${is} ${values.bind(key)}::${this.id.castTo}`
  }

  /**
   * Each mapped column as `c:FIELD` with its exact value, times also as `t:FIELD` in milliseconds, and the columns for
   * user functions as `u:NUMBER` in their own types.
   */
  columns(values: BindValues): string {
    const { columns } = this.#catalogue
    const cells = [...columns.keys()].map((field) => `${this.#cell(field)} AS "c:${field}"`)
    const timestamps = TIME_FIELDS.filter((field) => columns.has(field)).map(
      (field) => `${this.timestamp(field, values)} AS "t:${field}"`,
    )
    const user = this.userColumns().map(({ quoted }, at) => `${quoted} AS "u:${at}"`)
    const hasContent = `coalesce(${this.text('checkpoint')} !~* '${EMPTY_CHECKPOINT}', false) AS "hasCheckpoint"`
    return [...cells, ...timestamps, ...user, hasContent].join(', ')
  }

  /** Without user functions only mapped columns are read, and not the content of a checkpoint. */
  userColumns(): readonly PostgresColumn[] {
    if (hasUserFunctions(this.#mapping)) return this.#catalogue.readable
    const mapped = [...this.#catalogue.columns].filter(([field]) => field !== 'checkpoint')
    return [...new Set(mapped.map(([, column]) => column))]
  }

  /** No mapped column has changed since it was read, and no other row has the same id. */
  isUnchanged(row: AdoptedRow, values: BindValues): string {
    const { quoted } = this.id
    const id = `${values.bind(row.key)}::${this.id.castTo}`
    const conditions = [
      `${quoted} = ${id}`,
      `(SELECT count(*) FROM ${this.table} AS other WHERE other.${quoted} = ${id}) = 1`,
    ]
    for (const [field, name] of mappedFields(this.#mapping)) {
      const was = values.bind(row.snapshot[name] ?? null)
      conditions.push(`${this.#cell(field)} IS NOT DISTINCT FROM ${was}::text`)
    }
    return conditions.join(' AND ')
  }

  /** `column = value`. `format` applies to times in columns of text or numbers. */
  assignment(
    field: MappedField,
    assignment: Assignment,
    format: TimeFormat,
    values: BindValues,
  ): string {
    const column = this.#catalogue.columns.get(field)!
    if (assignment.kind === 'timestamp') {
      return `${column.quoted} = ${this.#timeValue(assignment.at, column, format, values)}`
    }
    const { kind, value } = assignment
    const raw =
      kind === 'restored' || value === null ? value : fitToColumn(String(value), field, column)
    return `${column.quoted} = ${values.bind(raw)}::${column.castTo}`
  }

  #timeValue(
    at: number,
    { kind, castTo }: PostgresColumn,
    format: TimeFormat,
    values: BindValues,
  ): string {
    switch (kind) {
      case 'timestamptz':
        return timestamp(values.bind(at))
      case 'timestamp':
      case 'date':
        return `((${timestamp(values.bind(at))}) AT TIME ZONE ${values.zone})::${castTo}`
      default:
        return `${values.bind(String(formatTimestamp(at, format, this.#mapping.timeZone)))}::${castTo}`
    }
  }

  /** The value that is kept and compared; a digest of a checkpoint, which may be long. */
  #cell(field: MappedField): string {
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

const BITS: Readonly<Record<string, number>> = { int2: 16, int4: 32, int8: 64 }
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether the column's type accepts this id: users type ids, and the server throws on a wrong type. */
export function isValidKey({ kind, base }: PostgresColumn, key: string): boolean {
  switch (kind) {
    case 'uuid':
      return UUID.test(key)
    case 'integer': {
      if (!/^-?\d{1,19}$/.test(key)) return false
      const value = BigInt(key)
      return BigInt.asIntN(BITS[base] ?? 64, value) === value
    }
    case 'number':
      return /^-?\d{1,100}(\.\d{1,100})?$/.test(key)
    default:
      return stripNul(key) === key
  }
}
