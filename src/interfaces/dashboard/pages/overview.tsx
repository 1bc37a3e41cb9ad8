import { CopyCommand } from '../kit/copy.tsx'
import { useTitle } from '../kit/section.tsx'
import { Failure, Loading } from '../kit/states.tsx'
import { useLive } from '../live.ts'
import { splitSummary } from '../model/overview.ts'
import { useResource } from '../resource.ts'
import type { Overview as Shape } from '../shapes.ts'
import { StatusHeadline } from './overview/status-headline.tsx'
import { Attention } from './overview/attention.tsx'
import { Charts } from './overview/charts.tsx'
import { LiveRuns } from './overview/live-runs.tsx'
import { SystemSummary } from './overview/system-summary.tsx'

/** The first screen. Live; the first picture is fetched, so that a stream that cannot be opened hides nothing. */
export function Overview() {
  const live = useLive<Shape>('overview')
  const fetched = useResource<Shape>(live ? null : '/api/overview')
  const overview = live ?? fetched.data
  useTitle(overview ? splitSummary(overview).line.replace(/\.$/, '') : 'Overview')
  if (!overview) {
    return fetched.error ? (
      <Failure error={fetched.error} retry={fetched.reload} />
    ) : (
      <Loading lines={8} what="Looking at everything" />
    )
  }
  if (overview.latest === null) return <FirstSteps />
  return (
    <>
      <StatusHeadline overview={overview} />
      <LiveRuns overview={overview} />
      <Attention overview={overview} />
      <Charts />
      <SystemSummary overview={overview} />
    </>
  )
}

/** Where nothing ever ran, the way to the first run is what matters. */
function FirstSteps() {
  return (
    <section class="first" aria-labelledby="first">
      <h1 id="first" tabIndex={-1}>
        Nothing has run yet.
      </h1>
      <p>Start one of these in a terminal; it shows up here without a reload.</p>
      <h2>See it survive kill -9, on this machine</h2>
      <CopyCommand command="unstuck demo" />
      <h2>Work on a crawl of your own</h2>
      <CopyCommand command="unstuck work crawl.ts --workers 4" />
      <h2>Wrap a scraper in any language</h2>
      <CopyCommand command="unstuck run shop --interval 30m -- python scraper.py" />
    </section>
  )
}
