import { CountLink, Link } from '../../kit/link.tsx'
import { Progress } from '../../kit/progress.tsx'
import { Section } from '../../kit/section.tsx'
import { Table, type Column } from '../../kit/table.tsx'
import { writeFilters } from '../../model/filters.ts'
import { safe } from '../../model/safe.ts'
import { plural, formatNumber } from '../../model/format.ts'
import type { GroupCounts, RunDetail, TargetStatus } from '../../shapes.ts'
import { TARGET_FILTERS } from './targets.tsx'

/** Progress group by group. Not there for a run without groups. */
export function Groups({ detail: { run, groups } }: { detail: RunDetail }) {
  const named = groups.filter(({ group }) => group !== null)
  if (named.length === 0) return null
  const to = (group: string | null, status?: TargetStatus) =>
    `/runs/${run.id}${writeFilters(TARGET_FILTERS, { group: group ?? '', status: status ? [status] : [] })}#targets`
  const count = (head: string, status: TargetStatus): Column<GroupCounts> => ({
    head,
    isNumber: true,
    cell: (row) => <CountLink count={row[status]} to={to(row.group, status)} />,
  })
  return (
    <Section title="By group" note={plural(named.length, 'group')}>
      <Table
        caption="Progress by group"
        rows={groups}
        rowKey={({ group }) => group ?? ''}
        columns={[
          {
            head: 'Group',
            isTitle: true,
            cell: ({ group }) =>
              group === null ? (
                <span class="faint">without a group</span>
              ) : (
                <Link to={to(group)} class="row-link">
                  <bdi>{safe(group)}</bdi>
                </Link>
              ),
          },
          {
            head: 'Done',
            isWide: true,
            cell: (row) => (
              <Progress
                label={`Progress of ${safe(row.group ?? 'targets without a group')}`}
                done={row.done}
                total={row.total}
                bad={row.failed + row.stuck + row.parked}
                isTotalKnown={run.planned}
                tone={row.done === row.total ? 'good' : run.health === null ? 'quiet' : 'busy'}
              />
            ),
          },
          count('In progress', 'in_progress'),
          count('Planned', 'planned'),
          count('Failed', 'failed'),
          count('Stuck', 'stuck'),
          count('Parked', 'parked'),
          { head: 'Pages', isNumber: true, cell: (row) => formatNumber(row.pages) },
          { head: 'Items', isNumber: true, cell: (row) => formatNumber(row.extracted) },
        ]}
      />
    </Section>
  )
}
