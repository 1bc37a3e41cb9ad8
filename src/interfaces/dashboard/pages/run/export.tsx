import { isCrawlee } from '../../../../core/model/crawlee.ts'
import { Section } from '../../kit/section.tsx'
import { safe } from '../../model/safe.ts'
import { apiUrl } from '../../router.ts'

const FORMATS = ['jsonl', 'csv', 'json'] as const

/** What the runs of a source have saved, as files. They are streamed, however many there are. */
export function ExportItems({ source }: { source: string }) {
  if (isCrawlee({ source })) return <InDatasets />
  const path = `/api/items/${encodeURIComponent(source)}`
  return (
    <Section title="Saved items" note={`all of ${safe(source)}`}>
      <div class="pad row">
        {FORMATS.map((format) => (
          <a
            key={format}
            class="button button-plain button-small"
            href={apiUrl(`${path}?format=${format}`)}
            download
          >
            {format.toUpperCase()}
          </a>
        ))}
      </div>
    </Section>
  )
}

function InDatasets() {
  return (
    <Section title="Saved items">
      <p class="pad">
        They are in the crawler’s datasets: <code>await crawler.exportData('items.json')</code>
      </p>
    </Section>
  )
}
