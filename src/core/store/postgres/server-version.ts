import { UnusableStoreError } from '../../model/errors.ts'

/** The oldest version that the tests of the store pass on and that PostgreSQL itself still supports. */
const OLDEST = 14

/** Columns for the statement that a connection is examined with. */
export const SERVER_VERSION = /* sql */ `
  current_setting('server_version_num')::int AS version_number, version() AS version_text
`

export type ServerVersion = { readonly version_number: number; readonly version_text: string }

/** Throws for a PostgreSQL that is too old. Compatible engines number their versions in their own way. */
export function refuseOldServer({ version_number, version_text }: ServerVersion): void {
  const version = /^PostgreSQL (\S+)/.exec(version_text)?.[1]
  if (version === undefined || version_number >= OLDEST * 10_000) return
  throw new UnusableStoreError(
    `The server is PostgreSQL ${version}, and ${OLDEST} or newer is needed. Upgrade the server, or use another one.`,
  )
}
