import { Section } from '../kit/section.tsx'
import { Loaded } from '../kit/states.tsx'
import { useResource } from '../resource.ts'
import type { Series } from '../shapes.ts'
import { useMemo } from 'preact/hooks'
import { Chart } from '../kit/chart.tsx'
import { useFilters } from '../kit/filters.tsx'
import { perMinute } from '../model/series.ts'

const RANGES = [
  { value: '', label: '1 h', since: '1h' },
  { value: '24h', label: '24 h', since: '24h' },
  { value: '7d', label: '7 days', since: '7d' },
]
const FRESH_MS = 15_000

/** Pages, items and recoveries over time; the range is in the address. */
export function Charts() {
  const { filters, set } = useFilters({ range: 'one' } as const)
  const range = RANGES.find(({ value }) => value === filters.range) ?? RANGES[0]!
  const series = useResource<Series>(`/api/series?since=${range.since}`, { refreshMs: FRESH_MS })
  const { data } = series
  const charts = useMemo(
    () =>
      data && {
        pages: perMinute(data, 'pages'),
        items: perMinute(data, 'items'),
        recoveries: data.points.map(({ at, recoveries }) => ({ at, value: recoveries })),
      },
    [data],
  )
  return (
    <Section
      title="Over time"
      aside={
        <div class="row chips" role="group" aria-label="Range of the charts">
          {RANGES.map(({ value, label }) => (
            <button
              key={value}
              type="button"
              class="chip"
              aria-pressed={value === range.value}
              onClick={() => set({ range: value }, { replace: true })}
            >
              {label}
            </button>
          ))}
        </div>
      }
    >
      <Loaded of={{ ...series, data: charts }} lines={5}>
        {({ pages, items, recoveries }) => (
          <div class="charts">
            <Chart label="Pages" unit="pages/min" kind="area" points={pages} />
            <Chart label="Items" unit="items/min" kind="area" points={items} />
            <Chart label="Recoveries" unit="recoveries" kind="bars" points={recoveries} />
          </div>
        )}
      </Loaded>
    </Section>
  )
}
