import { docPath } from '../../lib/files/doc-path.ts'
import { type AdoptedRow, openAdoptedTable } from './table/table.ts'
import type { Mapping } from './mapping.ts'
import { isActive, isMapped, blockedActions, statusValuesFor } from './runs/status-mapping.ts'
import { UsageError } from '../../core/model/errors.ts'
import type { Millis } from '../../core/model/time.ts'
import { plural } from '../../presenters/format.ts'
import { attempt, firstOf, fromError, ok, warning, type Finding } from '../../contracts/finding.ts'
import type { CheckHost } from '../../contracts/feature.ts'
import { ADOPTED_SECTION } from './config.ts'

/** Checks that each adopted table exists as mapped, can be written, and has no unmapped statuses. */
export async function checkAdoptedTables({ settings, address }: CheckHost): Promise<Finding[]> {
  if (!settings || address === null) return []
  const findings: Finding[] = []
  for (const mapping of settings.section(ADOPTED_SECTION))
    findings.push(await checkTable(mapping, address))
  return findings
}

async function checkTable(mapping: Mapping, address: string): Promise<Finding> {
  const inspected = await attempt(() => inspectTable(mapping, address))
  if ('error' in inspected) return openFailure(mapping, inspected.error)
  const { summary, warnings } = inspected.value
  if (warnings.length === 0) return ok('adopted', summary)
  return warning('adopted', summary, {
    details: warnings,
    why: whyItMatters(warnings),
    fix: `Correct each; ${docPath('guides/adopted-tables.md')}.`,
  })
}

function openFailure({ name, db }: Mapping, error: unknown): Finding {
  const entry = `adopted.${name}`
  const found = fromError('adopted', error, {
    why: 'Its rows are not recovered until then.',
    fix:
      error instanceof UsageError
        ? `Correct \`${entry}\` in the config, or give the login the rights it lacks; ${docPath('guides/adopted-tables.md')}.`
        : `Check that its database runs and accepts this login: its address is \`${db === null ? 'db' : `${entry}.db`}\` in the config.`,
  })
  return found.found.startsWith(entry) ? found : { ...found, found: `${entry}: ${found.found}` }
}

function whyItMatters(warnings: readonly string[]): string {
  const grants = warnings.filter((one) => one.includes('GRANT '))
  const right = 'What needs a right that the login lacks is refused.'
  if (grants.length === warnings.length) return right
  const others =
    'Rows with an unmapped status are shown as ended and never changed, an action without a mapped status is not applied, and slow queries load your database.'
  return grants.length > 0 ? `${right} ${others}` : others
}

async function inspectTable(configured: Mapping, address: string) {
  const table = await openAdoptedTable(configured, configured.db ?? address)
  const { mapping } = table
  const { name } = mapping
  const tableName = mapping.schema === null ? mapping.table : `${mapping.schema}.${mapping.table}`
  try {
    const counts = await table.counts()
    const sum = (some: typeof counts): number => some.reduce((all, { count }) => all + count, 0)
    const unknown = new Set(
      counts.filter((one) => !isMapped(mapping, one)).map(({ status }) => status),
    )
    const activeCount = sum(counts.filter((one) => isActive(mapping, one)))
    const { now } = await table.clock()
    const statusValues = statusValuesFor(mapping, ['running', 'in_progress'])
    const rows = await table.rows({ statusValues, limit: ROWS_CHECKED_MAX })
    return {
      summary: `${name}: ${tableName} exists, with ${plural(sum(counts), 'row')}, ${activeCount} active.`,
      warnings: [
        ...table.warnings,
        ...missingStatusWarnings(mapping),
        ...(unknown.size > 0 ? [unmappedWarning([...unknown])] : []),
        ...timeWarnings(rows, now),
      ],
    }
  } finally {
    await table.close()
  }
}

const ROWS_CHECKED_MAX = 500
const AHEAD_MS = 5 * 60_000
const HOUR_MS = 3_600_000

/** Warns about active rows without a time, which never get too old, and about times in the future. */
function timeWarnings(rows: readonly AdoptedRow[], now: Millis): string[] {
  const timesOf = ({ listedAt, heartbeatAt, activityAt }: AdoptedRow): Millis[] =>
    [listedAt, heartbeatAt, activityAt].filter((at) => at !== null)
  const keysOf = (some: readonly AdoptedRow[]): string =>
    firstOf(some.map(({ key }) => key)).join(', ')
  const withoutTime = rows.filter((row) => timesOf(row).length === 0)
  // A day without a time counts as its end, which may be yet to come.
  const isAhead = (at: Millis): boolean => at > now + AHEAD_MS && (at + 1) % HOUR_MS !== 0
  const ahead = rows.filter((row) => timesOf(row).some(isAhead))
  return [
    ...(withoutTime.length > 0
      ? [`Active rows have no readable time (${keysOf(withoutTime)}): they never get too old.`]
      : []),
    ...(ahead.length > 0
      ? [`Active rows have times in the future (${keysOf(ahead)}): is \`timeZone\` right?`]
      : []),
  ]
}

/** Warns about verdicts of the policy without a mapped status, which change no row. */
function missingStatusWarnings(mapping: Mapping): string[] {
  const { onCrash, onStalled, groups } = mapping.policy
  const ofGroups = Object.values(groups ?? {}).flatMap((one) => [one.onCrash, one.onStalled])
  const reachable = new Set<string | undefined>(['fail', onCrash, onStalled, ...ofGroups])
  return Object.entries(blockedActions(mapping))
    .filter(([action]) => reachable.has(action))
    .map(([, sentence]) => `${sentence}.`)
}

function unmappedWarning(statusValues: readonly string[]): string {
  const shown = firstOf(statusValues.map((value) => JSON.stringify(value))).join(', ')
  return `The ${statusValues.length === 1 ? 'status' : 'statuses'} ${shown} ${statusValues.length === 1 ? 'is' : 'are'} not mapped: such rows count as ended.`
}
