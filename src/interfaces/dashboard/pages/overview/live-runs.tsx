import { Age } from '../../kit/age.tsx'
import { Link } from '../../kit/link.tsx'
import { Section } from '../../kit/section.tsx'
import { Empty } from '../../kit/states.tsx'
import { Table } from '../../kit/table.tsx'
import { isStuck, worstFirst } from '../../model/overview.ts'
import { plural, formatNumber } from '../../model/format.ts'
import type { ListedRun, Overview } from '../../shapes.ts'
import { RunEta, RunName, RunOwner, RunPages, RunProgress, RunState } from '../../kit/run-cells.tsx'

/** Every live run, what is stuck first; when there are very many, the worst. */
export function LiveRuns({ overview }: { overview: Overview }) {
  const runs = worstFirst(overview.runs)
  const { liveRuns } = overview
  const isPart = liveRuns > runs.length
  return (
    <Section
      title="Live runs"
      note={
        isPart
          ? `${formatNumber(runs.length)} of ${plural(liveRuns, 'run')}, the worst first`
          : plural(liveRuns, 'run')
      }
      aside={
        <Link to={isPart ? '/runs?status=live' : '/runs'}>
          {isPart ? 'All live runs' : 'All runs'}
        </Link>
      }
    >
      {runs.length === 0 ? <NothingLive overview={overview} /> : <LiveTable runs={runs} />}
    </Section>
  )
}

function LiveTable({ runs }: { runs: readonly ListedRun[] }) {
  return (
    <Table
      caption="Live runs"
      rows={runs}
      rowKey={(run) => run.id}
      isTrouble={isStuck}
      columns={[
        { head: 'Source', cell: (run) => <RunName run={run} />, isTitle: true },
        { head: 'State', cell: (run) => <RunState run={run} />, isWide: true },
        { head: 'Progress', cell: (run) => <RunProgress run={run} />, isPlain: true },
        { head: 'Pages/min', cell: (run) => <RunPages run={run} />, isNumber: true },
        { head: 'ETA', cell: (run) => <RunEta run={run} />, isNumber: true },
        { head: 'Last progress', cell: (run) => <Age at={run.lastActivityAt} />, isNumber: true },
        { head: 'Owner', cell: (run) => <RunOwner run={run} />, isExtra: true },
      ]}
    />
  )
}

function NothingLive({ overview: { latest } }: { overview: Overview }) {
  return (
    <Empty title="Nothing runs right now." icon="pause" command="unstuck work crawl.ts">
      {latest && (
        <p>
          The last run was of <Link to={`/runs/${latest.id}`}>{latest.source}</Link>:{' '}
          {latest.status}, <Age at={latest.finishedAt ?? latest.lastActivityAt} />.
        </p>
      )}
    </Empty>
  )
}
