import { CountLink, Link } from '../kit/link.tsx'
import { Progress } from '../kit/progress.tsx'
import { Section } from '../kit/section.tsx'
import { type Column, More, Table } from '../kit/table.tsx'
import { writeFilters } from '../model/filters.ts'
import { formatNumber, plural, safe } from '../model/format.ts'
import type { GroupCounts, RunDetail, Target, TargetStatus } from '../shapes.ts'
import { useEffect } from 'preact/hooks'
import { useCompletedActions } from '../kit/actions.tsx'
import { Age, Text } from '../kit/text.tsx'
import { type FilterField, Filters, useFilters } from '../kit/filters.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { STATUS_STYLES, StatusPill } from '../kit/status.tsx'
import { type List, useList } from '../resource.ts'
import { focusSection } from '../router.ts'

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

const TARGET_FILTERS = { status: 'many', group: 'one', q: 'one' } as const
const STATUSES: readonly TargetStatus[] = [
  'planned',
  'in_progress',
  'done',
  'failed',
  'stuck',
  'parked',
]
const FRESH_MS = 5_000
const AT_ONCE = 25

/** Its targets, narrowed by what is in the address: what the numbers above lead to. */
export function Targets({ detail: { run, groups } }: { detail: RunDetail }) {
  const state = useFilters(TARGET_FILTERS)
  const isLive = run.health !== null
  const list = useList<Target>(
    withLimit(`/api/runs/${run.id}/targets${writeFilters(TARGET_FILTERS, state.filters)}`),
    { version: useCompletedActions(), ...(isLive && { refreshMs: FRESH_MS }) },
  )
  const isThere = list.items !== undefined
  useEffect(() => {
    // Whoever came by a link to them: the browser looked for them before they were there.
    if (isThere && location.hash === '#targets') focusSection('targets')
  }, [isThere])
  return (
    <Section title="Targets" id="targets" isBare>
      <div class="stack">
        <Filters label="Narrow the targets" fields={fields(groups)} state={state} />
        <div class="frame">
          <TargetList list={list} isFiltered={state.isFiltered} clear={state.clear} />
        </div>
      </div>
    </Section>
  )
}

function withLimit(path: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}limit=${AT_ONCE}`
}

function fields(groups: RunDetail['groups']): FilterField[] {
  const named = groups.flatMap(({ group }) => (group === null ? [] : [group]))
  return [
    { name: 'q', label: 'Search', kind: 'search', placeholder: 'Key or error' },
    {
      name: 'status',
      label: 'Status',
      kind: 'many',
      options: STATUSES.map((status) => ({ value: status, label: STATUS_STYLES[status].label })),
    },
    ...(named.length === 0
      ? []
      : [
          {
            name: 'group',
            label: 'Group',
            kind: 'choice' as const,
            options: [
              { value: '', label: 'all' },
              ...named.map((group) => ({ value: group, label: safe(group) })),
            ],
          },
        ]),
  ]
}

function TargetList(props: { list: List<Target>; isFiltered: boolean; clear: () => void }) {
  const { list } = props
  if (!list.items) {
    return list.error ? <Failure error={list.error} retry={list.reload} /> : <Loading lines={5} />
  }
  if (list.items.length === 0) {
    return props.isFiltered ? (
      <Empty
        title="No target fits these filters."
        icon="search"
        action={{ label: 'Clear filters', onClick: props.clear }}
      />
    ) : (
      <Empty title="It has no targets yet." icon="clock">
        They appear while its crawl names them.
      </Empty>
    )
  }
  return (
    <>
      {list.error && <Failure error={list.error} retry={list.reload} />}
      <Table
        caption="Targets of this run"
        rows={list.items}
        rowKey={(target) => target.id}
        columns={[
          {
            head: 'Target',
            cell: (target) => <Name target={target} />,
            isTitle: true,
            isWide: true,
          },
          { head: 'Status', cell: (target) => <StatusPill is={target.status} /> },
          { head: 'Page', cell: pageOf, isNumber: true },
          {
            head: 'Attempts',
            cell: (target) => formatNumber(target.attempts),
            isNumber: true,
            isExtra: true,
          },
          {
            head: 'Last progress',
            cell: (target) => <Age at={target.lastActivityAt} />,
            isNumber: true,
          },
        ]}
      />
      <More list={list} what="targets" />
    </>
  )
}

function Name({ target }: { target: Target }) {
  return (
    <div class="tight target-name">
      <span>
        <Link to={`/targets/${target.id}`} class="row-link">
          <Text value={target.key} />
        </Link>
        {target.group !== null && <span class="target-group">{safe(target.group)}</span>}
      </span>
      {target.lastError !== null && target.status !== 'done' && (
        <span class="clamp small bad">{safe(target.lastError)}</span>
      )}
    </div>
  )
}

function pageOf({ page, pageTarget }: Target) {
  return (
    <>
      {formatNumber(page)}
      {pageTarget !== null && <span class="faint"> / {formatNumber(pageTarget)}</span>}
    </>
  )
}
