import { ActionButtons } from '../kit/actions.tsx'
import { Filters, useFilters, type FilterField } from '../kit/filters.tsx'
import { Link } from '../kit/link.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded, NoMatch } from '../kit/states.tsx'
import { StatusPill } from '../kit/status.tsx'
import { numbers, Table, type Column } from '../kit/table.tsx'
import { Age, asSentence, Text } from '../kit/text.tsx'
import { useLive } from '../live.ts'
import { formatNumber, plural, shortId } from '../model/format.ts'
import { sortWorkers } from '../model/workers.ts'
import { useResource } from '../resource.ts'
import { LIVENESS, type Liveness, type Overview, type Page, type Worker } from '../shapes.ts'

const SPEC = { liveness: 'many', q: 'one' } as const

/** The workers with their liveness, and what it is based on. */
export function Workers() {
  const fetched = useResource<Page<Worker>>('/api/workers')
  const live = useLive<{ items: Worker[] }>('workers')
  const overview = useLive<Overview>('overview')
  const state = useFilters(SPEC)
  const data = live ?? fetched.data
  const items = data && sortWorkers(data.items)
  return (
    <>
      <PageHead title="Workers" actions={<ActionButtons actions={overview?.actions ?? []} />}>
        {items &&
          (countLiveness(items)
            .map(([liveness, count]) => `${formatNumber(count)} ${liveness}`)
            .join(', ') ||
            'No worker runs.')}
      </PageHead>
      <Loaded of={{ ...fetched, data: items }} lines={6}>
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

function countLiveness(workers: readonly Worker[]): [Liveness, number][] {
  return LIVENESS.map((liveness): [Liveness, number] => [
    liveness,
    workers.filter((worker) => worker.liveness === liveness).length,
  ]).filter(([, count]) => count > 0)
}

function fieldsFor(workers: readonly Worker[]): FilterField[] {
  const options = countLiveness(workers).map(([value]) => ({ value, label: value }))
  return [
    { name: 'q', label: 'Search source, host or pid', kind: 'search' },
    { name: 'liveness', label: 'Liveness', kind: 'many', options },
  ]
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
      <Empty title="No worker runs." icon="people" command="unstuck work crawl.ts --workers 4">
        Workers show up here when they start, and until they have ended cleanly.
      </Empty>
    )
  }
  if (rows.length === 0) return <NoMatch what="worker" clear={clear} />
  return (
    <Table
      caption="Workers"
      columns={COLUMNS}
      rows={rows}
      rowKey={({ id }) => id}
      isTrouble={({ liveness, targets }) => ['gone', 'silent'].includes(liveness) && targets > 0}
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
  { head: 'Reason', isWide: true, cell: ({ because }) => <Text value={asSentence(because)} /> },
  {
    head: 'Process',
    cell: ({ label, host, pid }) => (
      <span class="mono small">
        <Text value={label ?? host ?? 'unknown'} />
        {label === null && <span class="faint"> · {pid}</span>}
      </span>
    ),
  },
  numbers('Targets', ({ targets }) => formatNumber(targets)),
  numbers('Heartbeat', ({ lastHeartbeatAt }) => <Age at={lastHeartbeatAt} />),
  numbers('Started', ({ startedAt }) => <Age at={startedAt} />, true),
]

const MEANINGS: Readonly<Record<Liveness, string>> = {
  present: 'It holds its lock, or its heartbeats are in time.',
  gone: 'It is dead: the kernel or the database freed the lock that only its end frees, or its process no longer exists. Its targets are recovered at once.',
  silent:
    'It is presumed dead: no heartbeat for a whole lease. Its targets are recovered; if it continues later, its writes are refused.',
  stalled:
    'Its heartbeats are in time, but its work has made no progress for longer than the policy allows. It needs attention; the policy may also stop it.',
  unknown: 'Its state cannot be determined from here, so nothing is done to it.',
}

/** `hasRows`: some workers are only known from tables of your own. */
function LivenessLegend({ hasRows }: { hasRows: boolean }) {
  return (
    <Section title="What liveness means">
      <dl class="pairs pad">
        {LIVENESS.toReversed().map((liveness) => (
          <div key={liveness}>
            <dt>
              <StatusPill is={liveness} />
            </dt>
            <dd>{MEANINGS[liveness]}</dd>
          </div>
        ))}
      </dl>
      {hasRows && (
        <p class="foot soft">
          Workers on rows of your own tables are only known from those tables and from the config’s
          alive(). Their late writes are not refused: a row is only written while it is unchanged.
        </p>
      )}
    </Section>
  )
}
