import { ActionButtons } from '../kit/actions.tsx'
import { Age, sentence, Text } from '../kit/text.tsx'
import { Filters, useFilters } from '../kit/filters.tsx'
import { Link } from '../kit/link.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { StatusPill } from '../kit/status.tsx'
import { type Column, Table } from '../kit/table.tsx'
import { useLive } from '../live.ts'
import { formatNumber, plural, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import type { Liveness, Overview, Page, Worker } from '../shapes.ts'
import { LIVENESS_ORDER, sortWorkers } from '../model/workers.ts'

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

const MEANINGS: readonly { readonly liveness: Liveness; readonly means: string }[] = [
  { liveness: 'present', means: 'It holds its lock or beats in time.' },
  {
    liveness: 'gone',
    means:
      'Proven dead: the kernel or the database freed the lock that only its end frees, or its process no longer exists. What it held is taken back at once.',
  },
  {
    liveness: 'silent',
    means:
      'Presumed dead: no beat for a whole lease. What it held is taken back; should it wake up, its late writes are refused.',
  },
  {
    liveness: 'stalled',
    means:
      'It beats, but its work has not moved for longer than the policy allows. A person is told; the policy may also stop it.',
  },
  {
    liveness: 'unknown',
    means: 'Cannot be told from here, so nothing is done to it.',
  },
]

/** The five words, for those who read them for the first time. `hasRows`: some are known by tables of the user's own. */
function LivenessLegend({ hasRows }: { hasRows: boolean }) {
  return (
    <Section title="What the signs mean">
      <dl class="legend">
        {MEANINGS.map(({ liveness, means }) => (
          <div key={liveness}>
            <dt>
              <StatusPill is={liveness} />
            </dt>
            <dd>{means}</dd>
          </div>
        ))}
      </dl>
      {hasRows && (
        <p class="legend-note">
          Of who works on rows of tables of your own, those tables and the config’s alive() are all
          that is known. Nothing refuses their late writes: a row is only written to while it is as
          it was judged.
        </p>
      )}
    </Section>
  )
}
