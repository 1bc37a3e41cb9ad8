import { useState } from 'preact/hooks'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { Button } from '../kit/button.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Filters, useFilters, type FilterField } from '../kit/filters.tsx'
import { AuditList } from '../kit/history.tsx'
import { Icon } from '../kit/icon.tsx'
import { Link } from '../kit/link.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, ListView } from '../kit/states.tsx'
import { labelOf, Pill, StatusPill } from '../kit/status.tsx'
import { numbers, Table, type Column } from '../kit/table.tsx'
import { Age, Prose, Text } from '../kit/text.tsx'
import { useLiveEvents } from '../live.ts'
import { writeFilters } from '../model/filters.ts'
import { formatNumber, jsonText, plural, safe, shortId } from '../model/format.ts'
import { namesOne, totalsBySource, type SourceTotals } from '../model/history.ts'
import { useList, useResource } from '../resource.ts'
import { apiUrl, useLocation } from '../router.ts'
import type { AuditEntry, History as Answer, Operation } from '../shapes.ts'

/** The audit trail, and the operations that were requested over HTTP. */
export function History() {
  const { query } = useLocation()
  const isOperations = query.get('tab') === 'operations'
  return (
    <>
      <PageHead title="History">
        {isOperations
          ? 'Every call that wanted to change something, refused ones too.'
          : 'Every recovery, cleaning and operator action, with what it changed. Entries are never removed.'}
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
type Chosen = { readonly [K in keyof typeof SPEC]: string }

function AuditView() {
  const state = useFilters(SPEC)
  const { filters } = state
  const path = (limit: number) => {
    const query = new URLSearchParams(writeFilters(SPEC, filters))
    query.set('limit', String(limit))
    return `/api/history?${query}`
  }
  const list = useList<AuditEntry>(path(50))
  const all = useResource<Answer>('/api/history?limit=1')
  const counts = useResource<Answer>(path(1))
  const totals = totalsBySource(counts.data?.counts ?? [])
  const [fresh, setFresh] = useState(0)
  useLiveEvents<AuditEntry>('trail', (entry) => {
    if (matches(entry, filters)) setFresh((count) => count + 1)
  })
  const refresh = () => {
    setFresh(0)
    list.reload()
    counts.reload()
  }
  const newEntries = (
    <Button size="small" icon="again" onClick={refresh}>
      {`Show ${plural(fresh, 'new entry', 'new entries')}`}
    </Button>
  )
  const exportLink = (
    <a class="row" href={apiUrl(path(500))} download="unstuck-history.json">
      <Icon name="download" size={14} /> <span>Export as JSON</span>
    </a>
  )
  return (
    <>
      <Filters label="Filter the history" state={state} fields={fieldsFor(all.data, filters)} />
      {filters.run !== '' && (
        <p class="faint">
          Only of <Link to={`/runs/${filters.run}`}>run {shortId(filters.run)}</Link>.
        </p>
      )}
      {totals.length > 0 && (
        <Section title="By source">
          <Table
            caption="Applied actions by source"
            columns={TOTALS_COLUMNS}
            rows={totals}
            rowKey={({ source }) => source}
          />
        </Section>
      )}
      <Section
        title="Audit trail"
        note={fresh > 0 ? newEntries : 'newest first'}
        aside={exportLink}
      >
        <ListView
          list={list}
          what="entry"
          filters={state}
          empty={
            <Empty title="The audit trail is empty." icon="history">
              No recovery, no cleaning, no operator action.
            </Empty>
          }
        >
          {(entries) => <AuditList of={entries} />}
        </ListView>
      </Section>
      <CopyCommand
        command={unstuckCommand('history', [], {
          source: filters.source || undefined,
          since: filters.since || undefined,
        })}
        call={{ method: 'GET', path: apiUrl(path(50)) }}
      />
    </>
  )
}

const TOTALS_COLUMNS: readonly Column<SourceTotals>[] = [
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
    head: 'Actions',
    isWide: true,
    cell: ({ source, actions }) => (
      <span class="row">
        {actions.map(({ action, count }) => (
          <Link key={action} to={`/history${writeFilters(SPEC, { source, action })}`} class="plain">
            <StatusPill is={action} count={count} />
          </Link>
        ))}
      </span>
    ),
  },
  numbers('Times', ({ total }) => formatNumber(total), true),
  numbers('Last', ({ lastAt }) => <Age at={lastAt} />),
]

function matches(entry: AuditEntry, { source, action, run }: Chosen): boolean {
  return (
    (source === '' || entry.source === source) &&
    (action === '' || entry.action === action) &&
    (run === '' || (entry.run ?? '').endsWith(run))
  )
}

function fieldsFor(all: Answer | undefined, chosen: Chosen): FilterField[] {
  const options = (name: 'source' | 'action') => {
    const found = new Set([...(all?.counts.map((count) => count[name]) ?? []), chosen[name]])
    return [...found]
      .toSorted()
      .filter((value) => value !== '')
      .map((value) => ({ value, label: safe(name === 'action' ? labelOf(value) : value) }))
  }
  const any = { value: '', label: 'All' }
  return [
    { name: 'source', label: 'Source', kind: 'choice', options: [any, ...options('source')] },
    { name: 'action', label: 'Action', kind: 'choice', options: [any, ...options('action')] },
    {
      name: 'since',
      label: 'Time',
      kind: 'choice',
      options: [
        { value: '', label: 'All time' },
        { value: '1h', label: 'Last hour' },
        { value: '24h', label: 'Last 24 hours' },
        { value: '7d', label: 'Last 7 days' },
        { value: '30d', label: 'Last 30 days' },
      ],
    },
  ]
}

/** The operations that were requested over HTTP, whether or not they changed anything. */
function Operations() {
  const list = useList<Operation>('/api/operations?limit=50', { refreshMs: 10_000 })
  return (
    <Section title="Operations" note="newest first">
      <ListView
        list={list}
        what="operation"
        empty={<Empty title="No operation was requested over HTTP yet." icon="history" />}
      >
        {(operations) => (
          <Table
            caption="Operations over HTTP"
            columns={OPERATION_COLUMNS}
            rows={operations}
            rowKey={({ id }) => id}
          />
        )}
      </ListView>
    </Section>
  )
}

const OPERATION_COLUMNS: readonly Column<Operation>[] = [
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
    head: 'Response',
    cell: ({ status }) => (
      <Pill
        tone={status < 300 ? 'good' : status === 409 ? 'warn' : 'bad'}
        icon={status < 300 ? 'check' : 'cross'}
        label={`${status} ${status < 300 ? 'done' : 'refused'}`}
      />
    ),
  },
  { head: 'Result', isWide: true, cell: ({ result }) => <Prose text={result} /> },
  {
    head: 'Selection',
    cell: ({ call, selection, plan }) =>
      Object.keys(selection ?? {}).length === 0 ? (
        <span class="faint">{namesOne(call) ? 'as in the call' : 'all'}</span>
      ) : (
        <details class="more-text">
          <summary>Show</summary>
          <pre class="code">{jsonText(selection)}</pre>
          {plan !== null && <span class="faint small">plan {plan}</span>}
        </details>
      ),
  },
]
