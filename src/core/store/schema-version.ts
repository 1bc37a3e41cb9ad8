import { SchemaTooNewError, SchemaTooOldError } from '../model/errors.ts'

/** One step of the schema, applied in one transaction. */
export type Migration = {
  /** The schema version after it. Versions 1 to 99 belong to pre-releases. */
  readonly number: number
  readonly name: string
  readonly text: string
}

export const FIRST_VERSION = 100

/** True for a schema that a pre-release made. No migration leads from it to a released one. */
export function isPreRelease(version: number): boolean {
  return version > 0 && version < FIRST_VERSION
}

/** Throws unless this program can use the schema, after migrations that are pending. 0 is an empty database. */
export function assertKnown(found: number, known: number): void {
  if (found > known) throw new SchemaTooNewError(found, known)
  if (isPreRelease(found)) throw new SchemaTooOldError(found)
}

/** Returns the names of the migrations that a schema of this version lacks. */
export function pendingAfter(version: number, migrations: readonly Migration[]): string[] {
  if (isPreRelease(version)) return []
  return migrations.filter(({ number }) => number > version).map(({ name }) => name)
}
