import { useEffect } from 'preact/hooks'
import { useCompletedActions } from '../kit/actions.tsx'
import { Filters, useFilters, type FilterField } from '../kit/filters.tsx'
import { CountLink, Link } from '../kit/link.tsx'
import { Progress } from '../kit/progress.tsx'
import { Section } from '../kit/section.tsx'
import { Empty, ListView } from '../kit/states.tsx'
import { labelOf, StatusPill } from '../kit/status.tsx'
import { numbers, Table, type Column } from '../kit/table.tsx'
import { Age, PageNumber, Text } from '../kit/text.tsx'
import { writeFilters } from '../model/filters.ts'
import { formatNumber, plural, safe } from '../model/format.ts'
import { useList } from '../resource.ts'
import { focusSection } from '../router.ts'
import {
  TARGET_STATUSES,
  type GroupCounts,
  type RunDetail,
  type Target,
  type TargetStatus,
} from '../shapes.ts'

const SPEC = { status: 'many', group: 'one', q: 'one' } as const
const REFRESH_MS = 5_000
const PAGE_SIZE = 25

/** Progress by group. Nothing for a run without groups. */
export function Groups({ detail: { run, groups } }: { detail: RunDetail }) {
  const named = groups.filter(({ group }) => group !== null)
  if (named.length === 0) return null
  const to = (group: string | null, status?: TargetStatus) =>
    `/runs/${run.id}${writeFilters(SPEC, { group: group ?? '', status: status ? [status] : [] })}#targets`
  const count = (head: string, status: TargetStatus): Column<GroupCounts> =>
    numbers(head, (row) => <CountLink count={row[status]} to={to(row.group, status)} />)
  return (
    <Section title="By group" note={plural(named.length, 'group')}>
      <Table<GroupCounts>
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
          numbers('Pages', (row) => (row.pages === null ? '–' : formatNumber(row.pages))),
          numbers('Items', (row) => formatNumber(row.extracted)),
        ]}
      />
    </Section>
  )
}

/** The targets of a run, narrowed by the filters in the address. */
export function Targets({ detail: { run, groups } }: { detail: RunDetail }) {
  const filters = useFilters(SPEC)
  const query = new URLSearchParams(writeFilters(SPEC, filters.filters))
  query.set('limit', String(PAGE_SIZE))
  const list = useList<Target>(`/api/runs/${run.id}/targets?${query}`, {
    version: useCompletedActions(),
    ...(run.health !== null && { refreshMs: REFRESH_MS }),
  })
  const isLoaded = list.items !== undefined
  useEffect(() => {
    // After a link to them: the browser looked for them before they were loaded.
    if (isLoaded && location.hash === '#targets') focusSection('targets')
  }, [isLoaded])
  return (
    <Section title="Targets" id="targets" isBare>
      <div class="stack">
        <Filters label="Narrow the targets" fields={fieldsFor(groups)} state={filters} />
        <div class="frame">
          <ListView
            list={list}
            what="target"
            filters={filters}
            empty={
              <Empty title="It has no targets yet." icon="clock">
                They appear while its crawl names them.
              </Empty>
            }
          >
            {(targets) => (
              <Table
                caption="Targets of this run"
                rows={targets}
                rowKey={({ id }) => id}
                columns={COLUMNS}
              />
            )}
          </ListView>
        </div>
      </div>
    </Section>
  )
}

function fieldsFor(groups: RunDetail['groups']): FilterField[] {
  const named = groups.flatMap(({ group }) => (group === null ? [] : [group]))
  const fields: FilterField[] = [
    { name: 'q', label: 'Search', kind: 'search', placeholder: 'Key or error' },
    {
      name: 'status',
      label: 'Status',
      kind: 'many',
      options: TARGET_STATUSES.map((value) => ({ value, label: labelOf(value) })),
    },
  ]
  if (named.length > 0) {
    const options = named.map((group) => ({ value: group, label: safe(group) }))
    const all = { value: '', label: 'all' }
    fields.push({ name: 'group', label: 'Group', kind: 'choice', options: [all, ...options] })
  }
  return fields
}

const COLUMNS: readonly Column<Target>[] = [
  { head: 'Target', cell: (target) => <TargetName target={target} />, isTitle: true, isWide: true },
  { head: 'Status', cell: ({ status }) => <StatusPill is={status} /> },
  numbers('Page', (target) => <PageNumber of={target} />),
  numbers('Attempts', ({ attempts }) => formatNumber(attempts), true),
  numbers('Last progress', ({ lastActivityAt }) => <Age at={lastActivityAt} />),
]

function TargetName({ target: { id, key, group, lastError, status } }: { target: Target }) {
  return (
    <div class="tight target-name">
      <span>
        <Link to={`/targets/${id}`} class="row-link">
          <Text value={key} />
        </Link>
        {group !== null && <span class="faint small"> {safe(group)}</span>}
      </span>
      {lastError !== null && status !== 'done' && (
        <span class="clamp small bad">{safe(lastError)}</span>
      )}
    </div>
  )
}
