import type { ComponentChildren } from 'preact'
import { formatNumber, jsonText } from '../model/format.ts'
import type { Target } from '../shapes.ts'
import { Facts, Section } from './section.tsx'
import { Age, OutsideLink, PageNumber, Text } from './text.tsx'

/** How far a target came, where the next worker continues it. */
export function Position({ target, aside }: { target: Target; aside?: ComponentChildren }) {
  return (
    <Section
      title="Position"
      note={target.status === 'done' ? 'how far it came' : 'where the next worker continues'}
      aside={aside}
    >
      <div class="pad stack">
        <Facts
          of={[
            ['Last page', <PageNumber of={target} />],
            [
              'Last item',
              target.lastItemId === null ? '–' : <Text value={target.lastItemId} mono />,
            ],
            ['Attempts', formatNumber(target.attempts)],
            ['Crashes since its last page', formatNumber(target.crashes)],
            ['Next page', target.next === null ? '–' : <OutsideLink url={target.next} />],
            ['Finished', <Age at={target.finishedAt} none="not yet" />],
          ]}
        />
        {target.cursor !== null && (
          <details open>
            <summary>Cursor</summary>
            <pre class="code">{jsonText(target.cursor)}</pre>
          </details>
        )}
      </div>
    </Section>
  )
}
