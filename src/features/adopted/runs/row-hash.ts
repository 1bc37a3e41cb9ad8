import { hash } from 'node:crypto'
import type { Run } from '../../../core/model/run.ts'
import { iso } from '../../../core/model/time.ts'
import type { AuditEntry } from '../../../core/store/store.ts'
import type { AdoptedColumns, Mapping } from '../mapping.ts'
import type { AdoptedRow, RowChange } from '../table/table.ts'

type RowSnapshot = AdoptedRow['snapshot']
export type StoredSnapshot = Readonly<
  Record<string, string | number | null | { readonly bigint: string }>
>

/** Encodes a snapshot for the audit trail: JSON has no bigint. */
export function encodeSnapshot(snapshot: RowSnapshot): StoredSnapshot {
  return Object.fromEntries(
    Object.entries(snapshot).map(([name, value]) => [
      name,
      typeof value === 'bigint' ? { bigint: String(value) } : value,
    ]),
  )
}

/** Returns a hash of all mapped columns, so that a verdict can be matched with the row that was assessed. */
export function hashRow({ snapshot }: Pick<AdoptedRow, 'snapshot'>): string {
  return hash('sha256', JSON.stringify(encodeSnapshot(snapshot))).slice(0, 32)
}

/** Returns the same for a whole table. It changes when any of its rows moves. */
export function hashTableRun({ status, counts, lastActivityAt }: Run): string {
  return hash('sha256', JSON.stringify([status, counts.targets, lastActivityAt])).slice(0, 32)
}

/** Returns the current values of the columns that the change writes. */
export function snapshotBefore(
  { columns }: Mapping,
  row: AdoptedRow,
  change: RowChange,
): RowSnapshot {
  const names = [
    ...Object.keys(change).flatMap((field) => columns[field as keyof AdoptedColumns] ?? []),
    ...Object.keys(change.restore ?? {}),
  ]
  return Object.fromEntries(
    names.filter((name) => name in row.snapshot).map((name) => [name, row.snapshot[name]!]),
  )
}

/** Returns the written error and end, so that `revert` can check that they have not changed since. */
export function writtenValues(
  { columns }: Mapping,
  { error, finishedAt }: RowChange,
): { written?: { error?: string; finishedAt?: string } } {
  const written = {
    ...(columns.error !== undefined && typeof error === 'string' && { error }),
    ...(columns.finishedAt !== undefined &&
      typeof finishedAt === 'number' && { finishedAt: iso(finishedAt) }),
  }
  return Object.keys(written).length > 0 ? { written } : {}
}

/** Returns the values before the change of this audit entry; null if it has none. */
export function snapshotIn({ before }: Pick<AuditEntry, 'before'>): RowSnapshot | null {
  const { snapshot: stored } = (before ?? {}) as { snapshot?: StoredSnapshot }
  if (typeof stored !== 'object' || stored === null) return null
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? BigInt(value.bigint) : value,
    ]),
  )
}
