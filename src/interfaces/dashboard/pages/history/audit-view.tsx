import { useState } from 'preact/hooks'
import { Age } from '../../kit/age.tsx'
import { Button } from '../../kit/button.tsx'
import { CopyCommand } from '../../kit/copy.tsx'
import { Filters, useFilters } from '../../kit/filters.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Link } from '../../kit/link.tsx'
import { More } from '../../kit/more.tsx'
import { Section } from '../../kit/section.tsx'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Table, type Column } from '../../kit/table.tsx'
import { Text } from '../../kit/text.tsx'
import { AuditList } from '../../kit/history.tsx'
import { actionStyle } from '../../kit/verdict-style.ts'
import { useLiveEvents } from '../../live.ts'
import { safe } from '../../model/safe.ts'
import { plural, formatNumber, shortId } from '../../model/format.ts'
import { unstuckCommand } from '../../../../core/model/shell-command.ts'
import { useList, useResource } from '../../resource.ts'
import { apiUrl } from '../../router.ts'
import type { AuditEntry } from '../../shapes.ts'
import { totalsBySource, type SourceTotals } from './counts.ts'
import type { HistoryAnswer } from './shape.ts'

const SPEC = { source: 'one', action: 'one', since: 'one', run: 'one' } as const
const PERIODS = [
  { value: '', label: 'All time' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
]

export function AuditView() {
  const state = useFilters(SPEC)
  const { filters } = state
  const query = queryOf(filters)
  const list = useList<AuditEntry>(`/api/history?${query}limit=50`)
  const all = useResource<HistoryAnswer>('/api/history?limit=1')
  const counts = useResource<HistoryAnswer>(`/api/history?${query}limit=1`)
  const [fresh, setFresh] = useState(0)
  useLiveEvents<AuditEntry>('trail', (entry) => {
    if (matches(entry, filters)) setFresh((count) => count + 1)
  })
  const refresh = () => {
    setFresh(0)
    list.reload()
    counts.reload()
  }
  return (
    <>
      <Filters label="Filter the history" state={state} fields={fieldsFor(all.data, filters)} />
      {filters.run !== '' && (
        <p class="faint">
          Only of <Link to={`/runs/${filters.run}`}>run {shortId(filters.run)}</Link>.
        </p>
      )}
      {counts.data && counts.data.counts.length > 0 && (
        <Section title="By source">
          <Table
            caption="What was done, by source"
            columns={SUM_COLUMNS}
            rows={totalsBySource(counts.data.counts)}
            rowKey={({ source }) => source}
          />
        </Section>
      )}
      <Section
        title="Audit trail"
        note={
          fresh > 0 ? (
            <Button size="small" icon="again" onClick={refresh}>
              {`Show ${plural(fresh, 'new entry', 'new entries')}`}
            </Button>
          ) : (
            'newest first'
          )
        }
        aside={
          <a
            class="row"
            href={apiUrl(`/api/history?${query}limit=500`)}
            download="unstuck-history.json"
          >
            <Icon name="download" size={14} /> <span>Export as JSON</span>
          </a>
        }
      >
        <Loaded of={{ ...list, data: list.items }} lines={6}>
          {(entries) =>
            entries.length > 0 || list.hasMore ? (
              <>
                <AuditList of={entries} />
                <More list={list} what="entries" />
              </>
            ) : state.isFiltered ? (
              <Empty
                title="Nothing fits the filters."
                icon="search"
                action={{ label: 'Clear filters', onClick: state.clear }}
              />
            ) : (
              <Empty title="Nothing was done yet." icon="history">
                No recovery, no cleaning, no word of a person.
              </Empty>
            )
          }
        </Loaded>
      </Section>
      <CopyCommand
        command={commandOf(filters)}
        call={{ method: 'GET', path: apiUrl(`/api/history?${query}limit=50`) }}
      />
    </>
  )
}

const SUM_COLUMNS: readonly Column<SourceTotals>[] = [
  {
    head: 'Source',
    isTitle: true,
    cell: ({ source }) => (
      <Link class="row-link" to={`/history?source=${encodeURIComponent(source)}`}>
        <Text value={source} />
      </Link>
    ),
  },
  {
    head: 'What was done',
    isWide: true,
    cell: ({ source, actions }) => (
      <span class="row">
        {actions.map(({ action, count }) => {
          const { label, tone, icon } = actionStyle(action)
          return (
            <Link
              key={action}
              class={`pill tone-${tone}`}
              to={`/history?source=${encodeURIComponent(source)}&action=${encodeURIComponent(action)}`}
            >
              <Icon name={icon} size={13} />
              <span>
                {formatNumber(count)} {label}
              </span>
            </Link>
          )
        })}
      </span>
    ),
  },
  { head: 'Times', isNumber: true, isExtra: true, cell: ({ total }) => formatNumber(total) },
  { head: 'Last', isNumber: true, cell: ({ lastAt }) => <Age at={lastAt} /> },
]

type Chosen = { readonly [K in keyof typeof SPEC]: string }

function matches(entry: AuditEntry, { source, action, run }: Chosen): boolean {
  return (
    (source === '' || entry.source === source) &&
    (action === '' || entry.action === action) &&
    (run === '' || entry.run.endsWith(run))
  )
}

/** `source=shop&since=24h&`: ready for what follows. */
function queryOf(filters: Chosen): string {
  const set = Object.entries(filters).filter(([, value]) => value !== '')
  return set.length === 0 ? '' : `${new URLSearchParams(set)}&`
}

function commandOf({ source, since }: Chosen): string {
  return unstuckCommand('history', [], { source: source || undefined, since: since || undefined })
}

function fieldsFor(all: HistoryAnswer | undefined, { source, action }: Chosen) {
  const names = (pick: 'source' | 'action', chosen: string) =>
    [...new Set([...(all?.counts.map((count) => count[pick]) ?? []), chosen])]
      .filter((one) => one !== '')
      .toSorted()
      .map((one) => ({ value: one, label: safe(pick === 'action' ? actionStyle(one).label : one) }))
  const any = { value: '', label: 'All' }
  return [
    {
      name: 'source',
      label: 'Source',
      kind: 'choice' as const,
      options: [any, ...names('source', source)],
    },
    {
      name: 'action',
      label: 'Action',
      kind: 'choice' as const,
      options: [any, ...names('action', action)],
    },
    { name: 'since', label: 'Time', kind: 'choice' as const, options: PERIODS },
  ]
}
