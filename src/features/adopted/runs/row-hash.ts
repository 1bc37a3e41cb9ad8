import { hash } from 'node:crypto'
import { iso } from '../../../core/model/time.ts'
import type { AuditEntry } from '../../../core/store/store.ts'
import type { AdoptedColumns, Mapping } from '../mapping.ts'
import type { AdoptedRow, Change } from '../table/table.ts'

type Stamp = AdoptedRow['stamp']
export type KeptStamp = Readonly<
  Record<string, string | number | null | { readonly bigint: string }>
>

/** The trail is JSON, which has no large integers. */
export function keepStamp(stamp: Stamp): KeptStamp {
  return Object.fromEntries(
    Object.entries(stamp).map(([name, value]) => [
      name,
      typeof value === 'bigint' ? { bigint: String(value) } : value,
    ]),
  )
}

/** The same for the same content of all mapped columns: goes with whatever is judged, however often it is copied. */
export function sealOf({ stamp }: Pick<AdoptedRow, 'stamp'>): string {
  return hash('sha256', JSON.stringify(keepStamp(stamp))).slice(0, 32)
}

/** What stood in the columns that the change writes. */
export function stampBefore({ columns }: Mapping, row: AdoptedRow, change: Change): Stamp {
  const fields: Readonly<Record<string, keyof AdoptedColumns>> = {
    word: 'status',
    finishedAt: 'finishedAt',
    error: 'error',
    owner: 'owner',
    heartbeatAt: 'heartbeatAt',
  }
  const names = [
    ...Object.keys(change).flatMap((field) => columns[fields[field]!] ?? []),
    ...Object.keys(change.restore ?? {}),
  ]
  return Object.fromEntries(
    names.filter((name) => name in row.stamp).map((name) => [name, row.stamp[name]!]),
  )
}

/** What people see of an ending, where there are columns for it: by this `revert` tells whether it still stands there. */
export function wroteOf(
  { columns }: Mapping,
  { error, finishedAt }: Change,
): { wrote?: { error?: string; finishedAt?: string } } {
  const wrote = {
    ...(columns.error !== undefined && typeof error === 'string' && { error }),
    ...(columns.finishedAt !== undefined &&
      typeof finishedAt === 'number' && { finishedAt: iso(finishedAt) }),
  }
  return Object.keys(wrote).length > 0 ? { wrote } : {}
}

/** What stood there before this entry's deed; null when it tells of none. */
export function stampIn({ before }: Pick<AuditEntry, 'before'>): Stamp | null {
  const { stamp } = (before ?? {}) as { stamp?: KeptStamp }
  if (typeof stamp !== 'object' || stamp === null) return null
  return Object.fromEntries(
    Object.entries(stamp).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? BigInt(value.bigint) : value,
    ]),
  )
}
