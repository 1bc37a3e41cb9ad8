import { useMemo } from 'preact/hooks'
import { perMinute } from '../model/series.ts'
import { useResource } from '../resource.ts'
import type { Series } from '../shapes.ts'
import { Chart } from './chart.tsx'
import { Loaded } from './states.tsx'

const REFRESH_MS = 15_000

/** Charts of the pages and items per minute, and of recoveries. */
export function RateCharts(props: {
  /** `since=24h`, of all runs or one. */
  query: string
  isLive?: boolean
  /** Only samples of this time. */
  from?: string
  to?: string | null
  hasRecoveries?: boolean
}) {
  const { query, isLive = true, from = '', to = null, hasRecoveries = false } = props
  const series = useResource<Series>(
    `/api/series?${query}`,
    isLive ? { refreshMs: REFRESH_MS } : {},
  )
  const { data } = series
  const charts = useMemo(
    () =>
      data && {
        pages: perMinute(data, 'pages', { from, to }),
        items: perMinute(data, 'items', { from, to }),
        recoveries: data.points.map(({ at, recoveries }) => ({ at, value: recoveries })),
      },
    [data, from, to],
  )
  return (
    <Loaded of={{ ...series, data: charts }} lines={5}>
      {({ pages, items, recoveries }) => (
        <div class="charts">
          <Chart label="Pages" unit="pages/min" kind="area" points={pages} />
          <Chart label="Items" unit="items/min" kind="area" points={items} />
          {hasRecoveries && (
            <Chart label="Recoveries" unit="recoveries" kind="bars" points={recoveries} />
          )}
        </div>
      )}
    </Loaded>
  )
}
