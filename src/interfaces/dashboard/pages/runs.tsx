import { useCompletedActions } from '../kit/actions.tsx'
import { Filters, useFilters, type FilterField } from '../kit/filters.tsx'
import { RUN_COLUMNS } from '../kit/run-cells.tsx'
import { PageHead } from '../kit/section.tsx'
import { Empty, ListView } from '../kit/states.tsx'
import { labelOf } from '../kit/status.tsx'
import { Table } from '../kit/table.tsx'
import { writeFilters } from '../model/filters.ts'
import { useList } from '../resource.ts'
import { RUN_STATUSES, type ListedRun } from '../shapes.ts'

const SPEC = { status: 'many', source: 'one', q: 'one', since: 'one' } as const
const FIELDS: readonly FilterField[] = [
  { name: 'q', label: 'Search', kind: 'search', placeholder: 'A source, or the end of an id' },
  {
    name: 'status',
    label: 'Status',
    kind: 'many',
    options: ['live', ...RUN_STATUSES].map((value) => ({ value, label: labelOf(value) })),
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
const { source, state, progress, pages, items, rate, eta, lastProgress, created } = RUN_COLUMNS
const COLUMNS = [
  source,
  state,
  progress,
  pages,
  items,
  { ...rate, isExtra: true },
  { ...eta, isExtra: true },
  lastProgress,
  created,
]
const REFRESH_MS = 5_000

/** All runs, newest first, narrowed by the filters in the address. */
export function Runs() {
  const filters = useFilters(SPEC)
  const list = useList<ListedRun>(`/api/runs${writeFilters(SPEC, filters.filters)}`, {
    refreshMs: REFRESH_MS,
    version: useCompletedActions(),
  })
  const { source: chosen } = filters.filters
  return (
    <>
      <PageHead title={chosen === '' ? 'Runs' : `Runs of ${chosen}`}>
        The newest come first.
      </PageHead>
      <div class="stack">
        <Filters label="Narrow the list of runs" fields={FIELDS} state={filters} />
        <section class="frame" aria-label="Runs">
          <ListView
            list={list}
            what="run"
            lines={8}
            filters={filters}
            empty={
              <Empty title="Nothing has run yet." icon="play" command="unstuck work crawl.ts">
                A run shows up here as soon as it is queued.
              </Empty>
            }
          >
            {(runs) => (
              <Table
                caption="Runs, newest first"
                rows={runs}
                rowKey={({ id }) => id}
                isTrouble={({ severity }) => severity === 'stuck'}
                columns={COLUMNS}
              />
            )}
          </ListView>
        </section>
      </div>
    </>
  )
}
