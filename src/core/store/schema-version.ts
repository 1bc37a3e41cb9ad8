import { DatabaseError } from '../model/errors.ts'

/** One step of the schema, applied in one transaction. */
export type Migration = {
  /** The schema version after it. Versions 1 to 100 belong to pre-releases. */
  readonly number: number
  readonly name: string
  readonly text: string
}

export const FIRST_VERSION = 101

/** True for a schema that a pre-release made. No migration leads from it to a released one. */
export function isPreRelease(version: number): boolean {
  return version > 0 && version < FIRST_VERSION
}

/** Throws unless this program can use the schema, after migrations that are pending. 0 is an empty database. */
export function assertKnown(found: number, known: number): void {
  if (found > known) {
    throw new DatabaseError(
      'E_SCHEMA_NEWER',
      `The database has schema version ${found}; this unstuck knows up to ${known}. ` +
        'Nothing was written. Install the newer unstuck that migrated it.',
      { found, known },
    )
  }
  if (!isPreRelease(found)) return
  throw new DatabaseError(
    'E_SCHEMA_OLDER',
    `The database was made by a pre-release of unstuck (schema version ${found}) and cannot be migrated. Nothing was ` +
      'written. Use another database, or rename this one (the file, or the PostgreSQL schema `unstuck`), and a new one ' +
      'is made. To read what is in it, use the pre-release that made it.',
    { found },
  )
}

/** Returns the names of the migrations that a schema of this version lacks. */
export function pendingAfter(version: number, migrations: readonly Migration[]): string[] {
  if (isPreRelease(version)) return []
  return migrations.filter(({ number }) => number > version).map(({ name }) => name)
}
