import { UsageError } from '../../../core/model/errors.ts'
import { registerSecrets, passwordsIn } from '../../../core/model/redact.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedTable } from './table.ts'

/**
 * Finds the table and its columns in the catalogue of the database at this address; a `UsageError` says what is not
 * there, is not of a type that can be used, or may not be read or written.
 */
export async function openAdoptedTable(mapping: Mapping, address: string): Promise<AdoptedTable> {
  registerSecrets(passwordsIn(address))
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { openPostgresTable } = await import('./postgres-table.ts')
    return openPostgresTable(mapping, address)
  }
  if (address.startsWith('sqlite:')) {
    const { openSqliteTable } = await import('./sqlite-table.ts')
    return openSqliteTable(mapping, address.slice('sqlite:'.length))
  }
  // Not repeated here: it may hold a password.
  throw new UsageError(
    `adopted.${mapping.name}: the database address is neither sqlite:PATH nor postgres://….`,
  )
}
