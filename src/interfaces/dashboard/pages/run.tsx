import { isCrawlee } from '../../../core/model/crawlee.ts'
import { useCompletedActions } from '../kit/action-host.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { useLive } from '../live.ts'
import { isRow } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { navigate } from '../router.ts'
import type { RunDetail } from '../shapes.ts'
import { ExportItems } from './run/export.tsx'
import { Groups } from './run/groups.tsx'
import { RunHead } from './run/head.tsx'
import { RunLog } from './run/log.tsx'
import { RunNumbers } from './run/numbers.tsx'
import { RunPace } from './run/pace.tsx'
import { Targets } from './run/targets.tsx'
import { Timeline } from './run/timeline.tsx'
import { RunExplanation } from './run/explanation.tsx'

/** Everything about one run, live. */
export function RunPage({ id }: { id: string }) {
  const live = useLive<RunDetail>(`run:${id}`)
  const fetched = useResource<RunDetail>(`/api/runs/${id}`, { version: useCompletedActions() })
  const detail = newer(live, fetched.data)
  if (!detail) {
    if (fetched.error?.status === 404) return <NoSuchRun id={id} />
    return fetched.error ? (
      <Failure error={fetched.error} retry={fetched.reload} />
    ) : (
      <Loading lines={8} />
    )
  }
  return (
    <>
      <RunHead detail={detail} />
      <div class="run-grid">
        <div class="run-main">
          <RunNumbers detail={detail} />
          <Groups detail={detail} />
          {detail.run.adopted === null && (
            <>
              <RunPace run={detail.run} />
              {/* A crawler of Crawlee's has a log of its own, and keeps no journal. */}
              {!isCrawlee(detail.run) && <RunLog id={detail.run.id} />}
            </>
          )}
          {!isRow(detail.run) && <Targets detail={detail} />}
        </div>
        <div class="run-side">
          <RunExplanation detail={detail} />
          <Timeline audit={detail.audit} executions={detail.executions} />
          {detail.run.adopted === null && detail.run.extracted > 0 && (
            <ExportItems source={detail.run.source} />
          )}
          <Section title="In a terminal">
            <div class="pad stack">
              {detail.commands.map((command) => (
                <CopyCommand key={command} command={command} />
              ))}
            </div>
          </Section>
        </div>
      </div>
    </>
  )
}

/** The stream and the answer to a call may overtake each other. */
function newer(a: RunDetail | undefined, b: RunDetail | undefined): RunDetail | undefined {
  if (!a || !b) return a ?? b
  return a.run.lastActivityAt >= b.run.lastActivityAt ? a : b
}

function NoSuchRun({ id }: { id: string }) {
  return (
    <>
      <PageHead title="No such run" />
      <Empty
        title={`There is no run ${id} in this database.`}
        icon="question"
        action={{ label: 'All runs', onClick: () => navigate('/runs') }}
      >
        It may have been deleted.
      </Empty>
    </>
  )
}
