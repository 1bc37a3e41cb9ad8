import { plural, safe } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import type { ItemPreview } from '../shapes.ts'
import { Section } from './section.tsx'
import { Loaded } from './states.tsx'
import { Age, OutsideLink, Text } from './text.tsx'

const FORMATS = ['csv', 'jsonl', 'json'] as const
const SHOWN = 3
const REFRESH_MS = 5_000

/** The latest items of a source, or of one of its runs, and downloads of all of them. */
export function SavedItems(props: { source: string; run?: string; isLive: boolean }) {
  const { source, run, isLive } = props
  const path = `/api/items/${encodeURIComponent(source)}`
  const ofRun = run === undefined ? '' : `&run=${run}`
  const latest = useResource<{ items: readonly ItemPreview[] }>(
    `${path}/latest?limit=${SHOWN}${ofRun}`,
    isLive ? { refreshMs: REFRESH_MS } : {},
  )
  return (
    <Section title="Saved items" note={run === undefined ? `of ${safe(source)}` : 'latest'}>
      <Loaded of={latest} lines={3}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="pad soft">Later runs have saved its items again, or it has saved none.</p>
          ) : (
            <ul class="saved-items">
              {items.map((item, n) => (
                <Item key={`${n} ${item.key}`} of={item} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <div class="foot row">
        <span class="faint">{run === undefined ? 'All items' : 'Items of this run'}</span>
        <div class="row">
          {FORMATS.map((format) => (
            <a
              key={format}
              class="button button-plain button-small"
              href={apiUrl(`${path}?format=${format}${ofRun}`)}
              download
            >
              {format.toUpperCase()}
            </a>
          ))}
        </div>
      </div>
    </Section>
  )
}

function Item({
  of: { key, url, dataset, changedAt, version, fields, omitted },
}: {
  of: ItemPreview
}) {
  return (
    <li class="pad stack">
      <div class="row">
        {url === null ? <Text value={key} clip mono /> : <OutsideLink url={url} clip />}
        <span class="faint small to-end">
          {dataset !== null && <>{safe(dataset)}, </>}
          {version > 1 ? 'changed ' : 'new '}
          <Age at={changedAt} />
        </span>
      </div>
      <dl class="pairs small">
        {fields.map(({ name, value, isCut }) => (
          <div key={name}>
            <dt>
              <Text value={name} clip />
            </dt>
            <dd>{isCut ? <Text value={value} /> : <OutsideOrText value={value} />}</dd>
          </div>
        ))}
      </dl>
      {omitted > 0 && <span class="faint small">and {plural(omitted, 'more field')}</span>}
    </li>
  )
}

/** Text, or a link if it is an address. */
function OutsideOrText({ value }: { value: string }) {
  return /^https?:\/\//i.test(value) ? <OutsideLink url={value} clip /> : <Text value={value} />
}
