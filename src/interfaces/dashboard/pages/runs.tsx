import { useCompletedActions } from '../kit/actions.tsx'
import { Age } from '../kit/text.tsx'
import { type FilterField, Filters, useFilters } from '../kit/filters.tsx'
import { More, Table } from '../kit/table.tsx'
import { RunEta, RunName, RunPages, RunProgress, RunState } from '../kit/run-cells.tsx'
import { PageHead } from '../kit/section.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { writeFilters } from '../model/filters.ts'
import { STATUS_STYLES } from '../kit/status.tsx'
import { formatNumber } from '../model/format.ts'
import { type List, useList } from '../resource.ts'
import type { ListedRun, RunStatus } from '../shapes.ts'

const SPEC = { status: 'many', source: 'one', q: 'one', since: 'one' } as const
const STATUSES: readonly RunStatus[] = [
  'queued',
  'running',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
]
const FIELDS: readonly FilterField[] = [
  { name: 'q', label: 'Search', kind: 'search', placeholder: 'Source or end of the id' },
  {
    name: 'status',
    label: 'Status',
    kind: 'many',
    options: [
      { value: 'live', label: 'live' },
      ...STATUSES.map((status) => ({ value: status, label: STATUS_STYLES[status].label })),
    ],
  },
  {
    name: 'since',
    label: 'Created',
    kind: 'choice',
    options: [
      { value: '', label: 'at any time' },
      { value: '1h', label: 'within an hour' },
      { value: '24h', label: 'within a day' },
      { value: '7d', label: 'within a week' },
    ],
  },
]
const FRESH_MS = 5_000

/** All runs, newest first, narrowed by what is in the address. */
export function Runs() {
  const state = useFilters(SPEC)
  const completedActions = useCompletedActions()
  const path = `/api/runs${writeFilters(SPEC, state.filters)}`
  const list = useList<ListedRun>(path, { refreshMs: FRESH_MS, version: completedActions })
  const { source } = state.filters
  return (
    <>
      <PageHead title={source === '' ? 'Runs' : `Runs of ${source}`}>
        The newest come first. Of Unstuck’s own, at most one per source is live.
      </PageHead>
      <div class="stack">
        <Filters label="Narrow the list of runs" fields={FIELDS} state={state} />
        <section class="frame" aria-label="Runs">
          <RunList list={list} isFiltered={state.isFiltered} clear={state.clear} />
        </section>
      </div>
    </>
  )
}

function RunList(props: { list: List<ListedRun>; isFiltered: boolean; clear: () => void }) {
  const { list } = props
  if (!list.items) {
    return list.error ? <Failure error={list.error} retry={list.reload} /> : <Loading lines={8} />
  }
  if (list.items.length === 0 && props.isFiltered) {
    return (
      <Empty
        title="No run fits these filters."
        icon="search"
        action={{ label: 'Clear filters', onClick: props.clear }}
      />
    )
  }
  if (list.items.length === 0) {
    return (
      <Empty title="Nothing has run yet." icon="play" command="unstuck work crawl.ts">
        A run shows up here as soon as it is queued.
      </Empty>
    )
  }
  return (
    <>
      {list.error && <Failure error={list.error} retry={list.reload} />}
      <Table
        caption="Runs, newest first"
        rows={list.items}
        rowKey={(run) => run.id}
        isTrouble={({ severity }) => severity === 'stuck'}
        columns={[
          { head: 'Source', cell: (run) => <RunName run={run} />, isTitle: true },
          { head: 'State', cell: (run) => <RunState run={run} />, isWide: true },
          { head: 'Progress', cell: (run) => <RunProgress run={run} />, isPlain: true },
          { head: 'Pages', cell: (run) => formatNumber(run.pages), isNumber: true },
          { head: 'Items', cell: (run) => formatNumber(run.extracted), isNumber: true },
          {
            head: 'Pages/min',
            cell: (run) => <RunPages run={run} />,
            isNumber: true,
            isExtra: true,
          },
          { head: 'ETA', cell: (run) => <RunEta run={run} />, isNumber: true, isExtra: true },
          { head: 'Last progress', cell: (run) => <Age at={run.lastActivityAt} />, isNumber: true },
          {
            head: 'Created',
            cell: (run) => <Age at={run.createdAt} />,
            isNumber: true,
            isExtra: true,
          },
        ]}
      />
      <More list={list} what="runs" />
    </>
  )
}
