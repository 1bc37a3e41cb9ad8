import { channel } from 'node:diagnostics_channel'

/**
 * Each statement sent to a database is announced here by name: `before` it is sent, `sent` (PostgreSQL: on
 * its way, no reply yet), `after`. For tracing, and for the tests that kill the process at each of them.
 */
export type StatementMoment = {
  readonly name: string
  readonly moment: 'before' | 'sent' | 'after'
}

const statements = channel('unstuck:statement')

export function announce(name: string, moment: StatementMoment['moment']): void {
  if (statements.hasSubscribers) statements.publish({ name, moment } satisfies StatementMoment)
}
