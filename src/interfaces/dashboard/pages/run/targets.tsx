import { useEffect } from 'preact/hooks'
import { useCompletedActions } from '../../kit/action-host.tsx'
import { Age } from '../../kit/age.tsx'
import { Filters, useFilters, type FilterField } from '../../kit/filters.tsx'
import { Link } from '../../kit/link.tsx'
import { More } from '../../kit/more.tsx'
import { Section } from '../../kit/section.tsx'
import { Empty, Failure, Loading } from '../../kit/states.tsx'
import { StatusPill } from '../../kit/status.tsx'
import { Table } from '../../kit/table.tsx'
import { Text } from '../../kit/text.tsx'
import { writeFilters } from '../../model/filters.ts'
import { safe } from '../../model/safe.ts'
import { STATUS_STYLES } from '../../model/status-style.ts'
import { formatNumber } from '../../model/format.ts'
import { useList, type List } from '../../resource.ts'
import { focusSection } from '../../router.ts'
import type { RunDetail, Target, TargetStatus } from '../../shapes.ts'

export const TARGET_FILTERS = { status: 'many', group: 'one', q: 'one' } as const
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
