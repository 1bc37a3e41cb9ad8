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

/** The values of one statement, each with its place in it. */
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
  text(field: MappedField): string {
    const column = this.#catalogue.columns.get(field)
    return column ? `${column.quoted}::text` : 'NULL::text'
  }

  timestamp(field: TimeField, values: BindValues): string {
    const column = this.#catalogue.columns.get(field)
    return column ? timestampSql(column.quoted, column.kind, () => values.zone) : 'NULL::float8'
  }

  /** A status that is one of these, compared in its own type: an index on it is of use. */
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
   * Each mapped column as `c:` and its field, exactly as it stands there; the moments as `m:`. For the user's functions
   * each that may be read as `u:` and its number, as their own programs get it.
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

  /** Without a function of the user's nobody looks at more than what is mapped, nor at a checkpoint's content. */
  userColumns(): readonly PostgresColumn[] {
    if (hasUserFunctions(this.#mapping)) return this.#catalogue.readable
    const mapped = [...this.#catalogue.columns].filter(([field]) => field !== 'checkpoint')
    return [...new Set(mapped.map(([, column]) => column))]
  }

  /** Nothing that was read of the row has changed since, and it is the only one of its id. */
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

  /** `column = value`. The form is that of times in a column for text or numbers. */
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

  /** As it is kept and compared: of a checkpoint, which may be long, enough to see that it is another. */
  #cell(field: MappedField): string {
    const text = this.text(field)
    return field === 'checkpoint' ? `length(${text}) || ':' || hashtextextended(${text}, 0)` : text
  }
}

/** As the column takes it. What was said of an error may be cut, a word may not. */
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

/** Whether such an id can stand in the column at all. People type ids, and the server refuses what is not of the type. */
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
