import { Link } from '../kit/link.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { apiUrl, useLocation } from '../router.ts'
import { useState } from 'preact/hooks'
import { Age, Text } from '../kit/text.tsx'
import { Button } from '../kit/button.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Filters, useFilters } from '../kit/filters.tsx'
import { Icon } from '../kit/icon.tsx'
import { type Column, More, Table } from '../kit/table.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { AuditList } from '../kit/history.tsx'
import { actionStyle, Pill } from '../kit/status.tsx'
import { useLiveEvents } from '../live.ts'
import { formatNumber, jsonText, plural, safe, shortId } from '../model/format.ts'
import { unstuckCommand } from '../../../lib/text/shell-command.ts'
import { useList, useResource } from '../resource.ts'
import type { AuditEntry, History, Operation } from '../shapes.ts'
import { type SourceTotals, totalsBySource } from '../model/history.ts'

/** What was done to whose runs, by whom and why; and what people asked for through the API. */
export function History() {
  const { query } = useLocation()
  const isOperations = query.get('tab') === 'operations'
  return (
    <>
      <PageHead title="History">
        {isOperations
          ? 'Every call that wanted to change something, refused ones too.'
          : 'Every recovery, cleaning and word of a person, with what it changed. Nothing is ever taken out.'}
      </PageHead>
      <nav class="tabs" aria-label="Kinds of history">
        <Link to="/history" class="tab" isCurrent={!isOperations}>
          Audit trail
        </Link>
        <Link to="/history?tab=operations" class="tab" isCurrent={isOperations}>
          Operations over HTTP
        </Link>
      </nav>
      {isOperations ? <Operations /> : <AuditView />}
    </>
  )
}

const SPEC = { source: 'one', action: 'one', since: 'one', run: 'one' } as const
const PERIODS = [
  { value: '', label: 'All time' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
]

function AuditView() {
  const state = useFilters(SPEC)
  const { filters } = state
  const query = queryOf(filters)
  const list = useList<AuditEntry>(`/api/history?${query}limit=50`)
  const all = useResource<History>('/api/history?limit=1')
  const counts = useResource<History>(`/api/history?${query}limit=1`)
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

function fieldsFor(all: History | undefined, { source, action }: Chosen) {
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

/** What people and scripts asked for over HTTP, whether or not it changed anything. */
function Operations() {
  const list = useList<Operation>('/api/operations?limit=50', { refreshMs: 10_000 })
  return (
    <Section title="Operations" note="newest first">
      <Loaded of={{ ...list, data: list.items }} lines={6}>
        {(operations) =>
          operations.length === 0 ? (
            <Empty title="Nobody has asked for anything over HTTP yet." icon="history" />
          ) : (
            <>
              <Table
                caption="Operations over HTTP"
                columns={COLUMNS}
                rows={operations}
                rowKey={({ id }) => id}
              />
              <More list={list} what="operations" />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

const COLUMNS: readonly Column<Operation>[] = [
  { head: 'When', cell: ({ at }) => <Age at={at} /> },
  {
    head: 'Who',
    cell: ({ actor, address }) => (
      <>
        <Text value={actor} />
        {address !== null && !actor.includes(address) && (
          <div class="faint small">
            from <Text value={address} mono />
          </div>
        )}
      </>
    ),
  },
  { head: 'Call', isTitle: true, cell: ({ call }) => <Text value={call} mono /> },
  {
    head: 'Answer',
    cell: ({ status }) => (
      <Pill
        tone={status < 300 ? 'good' : status === 409 ? 'warn' : 'bad'}
        icon={status < 300 ? 'check' : 'cross'}
        label={`${status} ${status < 300 ? 'done' : 'refused'}`}
      />
    ),
  },
  { head: 'Result', isWide: true, cell: ({ result }) => <Text value={result} /> },
  {
    head: 'Selection',
    cell: ({ selection, plan }) =>
      isEmpty(selection) ? (
        <span class="faint">all</span>
      ) : (
        <details class="more-text">
          <summary>Show</summary>
          <pre class="code">{jsonText(selection)}</pre>
          {plan !== null && <span class="faint small">plan {plan}</span>}
        </details>
      ),
  },
]

function isEmpty(selection: unknown): boolean {
  return typeof selection !== 'object' || selection === null || Object.keys(selection).length === 0
}
