import { ActionButtons } from '../kit/action-host.tsx'
import { Age } from '../kit/age.tsx'
import { Filters, useFilters } from '../kit/filters.tsx'
import { Link } from '../kit/link.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { StatusPill } from '../kit/status.tsx'
import { sentence } from '../kit/sentence.ts'
import { Table, type Column } from '../kit/table.tsx'
import { Text } from '../kit/text.tsx'
import { useLive } from '../live.ts'
import { plural, formatNumber, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import type { Liveness, Overview, Page, Worker } from '../shapes.ts'
import { LIVENESS_ORDER, sortWorkers } from './workers/order.ts'
import { LivenessLegend } from './workers/liveness-legend.tsx'

const SPEC = { liveness: 'many', q: 'one' } as const

/** Who is there, who is not, and why we believe so. */
export function Workers() {
  const asked = useResource<Page<Worker>>('/api/workers')
  const live = useLive<{ items: Worker[] }>('workers')
  const overview = useLive<Overview>('overview')
  const state = useFilters(SPEC)
  const data = live ?? asked.data
  const items = data && sortWorkers(data.items)
  return (
    <>
      <PageHead title="Workers" actions={<ActionButtons actions={overview?.actions ?? []} />}>
        {items && <Summary of={items} />}
      </PageHead>
      <Loaded of={{ ...asked, data: items }} lines={6}>
        {(workers) => (
          <>
            <Section
              title="Processes"
              note={plural(workers.length, 'worker')}
              aside={<Filters label="Filter workers" state={state} fields={fieldsFor(workers)} />}
            >
              <WorkerList of={workers} state={state} />
            </Section>
            <LivenessLegend hasRows={workers.some(({ label }) => label !== null)} />
          </>
        )}
      </Loaded>
    </>
  )
}

function WorkerList(props: {
  of: readonly Worker[]
  state: ReturnType<typeof useFilters<typeof SPEC>>
}) {
  const { filters, clear } = props.state
  const q = filters.q.toLowerCase()
  const rows = props.of.filter(
    ({ liveness, source, label, host, pid, id }) =>
      (filters.liveness.length === 0 || filters.liveness.includes(liveness)) &&
      `${source}\n${label ?? pid}\n${host}\n${id}`.toLowerCase().includes(q),
  )
  if (props.of.length === 0) {
    return (
      <Empty title="No worker is there." icon="people" command="unstuck work crawl.ts --workers 4">
        Workers show up here when they start, and until they have ended cleanly.
      </Empty>
    )
  }
  if (rows.length === 0) {
    return (
      <Empty
        title="No worker fits the filters."
        icon="search"
        action={{ label: 'Clear filters', onClick: clear }}
      />
    )
  }
  return (
    <Table
      caption="Workers"
      columns={COLUMNS}
      rows={rows}
      rowKey={({ id }) => id}
      isTrouble={({ liveness, targets }) => isLost(liveness) && targets > 0}
    />
  )
}

const COLUMNS: readonly Column<Worker>[] = [
  {
    head: 'Worker',
    isTitle: true,
    cell: ({ id, source, label }) => (
      <>
        <Link class="row-link" to={`/runs?status=live&source=${encodeURIComponent(source)}`}>
          {source === '' ? 'background recovery' : <Text value={source} />}
        </Link>
        {label === null && <div class="faint mono small">{shortId(id)}</div>}
      </>
    ),
  },
  { head: 'Liveness', cell: ({ liveness, because }) => <StatusPill is={liveness} why={because} /> },
  {
    head: 'Why we believe so',
    isWide: true,
    cell: ({ because }) => <Text value={sentence(because)} />,
  },
  {
    head: 'Process',
    cell: ({ label, host, pid }) => (
      <span class="mono small">
        <Text value={label ?? host} />
        {label === null && <span class="faint"> · {pid}</span>}
      </span>
    ),
  },
  { head: 'Targets', isNumber: true, cell: ({ targets }) => formatNumber(targets) },
  {
    head: 'Last beat',
    isNumber: true,
    cell: ({ lastHeartbeatAt }) => <Age at={lastHeartbeatAt} />,
  },
  {
    head: 'Started',
    isNumber: true,
    isExtra: true,
    cell: ({ startedAt }) => <Age at={startedAt} />,
  },
]

/** `4 present, 1 silent`, worst first. */
function Summary({ of }: { of: readonly Worker[] }) {
  const counts = LIVENESS_ORDER.map((liveness) => ({
    liveness,
    count: of.filter((worker) => worker.liveness === liveness).length,
  })).filter(({ count }) => count > 0)
  if (counts.length === 0) return <>Nobody is at work.</>
  return <>{counts.map(({ liveness, count }) => `${formatNumber(count)} ${liveness}`).join(', ')}</>
}

function isLost(liveness: Liveness): boolean {
  return liveness === 'gone' || liveness === 'silent'
}

function fieldsFor(workers: readonly Worker[]) {
  const there = LIVENESS_ORDER.filter((liveness) =>
    workers.some((worker) => worker.liveness === liveness),
  )
  return [
    { name: 'q', label: 'Search source, host or pid', kind: 'search' as const },
    {
      name: 'liveness',
      label: 'Sign',
      kind: 'many' as const,
      options: there.map((liveness) => ({ value: liveness, label: liveness })),
    },
  ]
}
