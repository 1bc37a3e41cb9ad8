import { stripNul } from '../../../core/store/postgres/strip-nul.ts'
import type { PostgresColumn } from './postgres-catalogue.ts'

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
