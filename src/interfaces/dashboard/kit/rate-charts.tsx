import { useMemo } from 'preact/hooks'
import { cutUnsampled, meanPerMinute, perMinute } from '../model/series.ts'
import { useResource } from '../resource.ts'
import type { ListedRun, Series } from '../shapes.ts'
import { Chart } from './chart.tsx'
import { Loaded } from './states.tsx'

const REFRESH_MS = 15_000
/** A young run has samples of each second. */
const YOUNG_REFRESH_MS = 3_000

/** Charts of the pages and items per minute, and of recoveries. */
export function RateCharts(props: {
  /** `since=24h` of all runs, or `run=ID` from its start on. */
  query: string
  /** The current pace, as other parts of the page show it; undefined: that of the newest step. */
  pace?: ListedRun['pace'] | undefined
  isLive?: boolean
  isYoung?: boolean
  hasRecoveries?: boolean
}) {
  const { query, pace, isLive = true, isYoung = false, hasRecoveries = false } = props
  const series = useResource<Series>(
    `/api/series?${query}`,
    isLive ? { refreshMs: isYoung ? YOUNG_REFRESH_MS : REFRESH_MS } : {},
  )
  const { data } = series
  const charts = useMemo(() => {
    if (!data) return undefined
    const shown = cutUnsampled(data)
    return {
      mean: { pages: meanPerMinute(data, 'pages'), items: meanPerMinute(data, 'items') },
      pages: perMinute(shown, 'pages'),
      items: perMinute(shown, 'items'),
      recoveries: shown.points.map(({ at, recoveries }) => ({ at, value: recoveries })),
    }
  }, [data])
  return (
    <Loaded of={{ ...series, data: charts }} lines={5}>
      {({ mean, pages, items, recoveries }) =>
        !isLive && pages.length < 2 ? (
          <p class="pad faint">It was too short for a chart.</p>
        ) : (
          <div class="charts">
            <Chart
              label="Pages"
              unit="pages/min"
              kind="area"
              points={pages}
              current={isLive ? pace && pace.pagesPerMinute : mean.pages}
              isOver={!isLive}
            />
            <Chart
              label="Items"
              unit="items/min"
              kind="area"
              points={items}
              current={isLive ? pace && pace.itemsPerMinute : mean.items}
              isOver={!isLive}
            />
            {hasRecoveries && (
              <Chart label="Recoveries" unit="recoveries" kind="bars" points={recoveries} />
            )}
          </div>
        )
      }
    </Loaded>
  )
}
