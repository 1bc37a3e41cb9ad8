import { Age } from '../../kit/age.tsx'
import { More } from '../../kit/more.tsx'
import { Section } from '../../kit/section.tsx'
import { Empty, Loaded } from '../../kit/states.tsx'
import { Pill } from '../../kit/status.tsx'
import { Table, type Column } from '../../kit/table.tsx'
import { Text } from '../../kit/text.tsx'
import { jsonText } from '../../model/safe.ts'
import { useList } from '../../resource.ts'
import type { Operation } from '../../shapes.ts'

/** What people and scripts asked for over HTTP, whether or not it changed anything. */
export function Operations() {
  const list = useList<Operation>('/api/operations?limit=50', { refreshMs: 10_000 })
  return (
    <Section title="Operations" note="newest first">
      <Loaded of={{ ...list, data: list.items }} lines={6}>
        {(operations) =>
          operations.length === 0 ? (
            <Empty title="Nobody has asked for anything over HTTP yet." icon="history" />
          ) : (
            <>
              <Table
                caption="Operations over HTTP"
                columns={COLUMNS}
                rows={operations}
                rowKey={({ id }) => id}
              />
              <More list={list} what="operations" />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

const COLUMNS: readonly Column<Operation>[] = [
  { head: 'When', cell: ({ at }) => <Age at={at} /> },
  {
    head: 'Who',
    cell: ({ actor, address }) => (
      <>
        <Text value={actor} />
        {address !== null && !actor.includes(address) && (
          <div class="faint small">
            from <Text value={address} mono />
          </div>
        )}
      </>
    ),
  },
  { head: 'Call', isTitle: true, cell: ({ call }) => <Text value={call} mono /> },
  {
    head: 'Answer',
    cell: ({ status }) => (
      <Pill
        tone={status < 300 ? 'good' : status === 409 ? 'warn' : 'bad'}
        icon={status < 300 ? 'check' : 'cross'}
        label={`${status} ${status < 300 ? 'done' : 'refused'}`}
      />
    ),
  },
  { head: 'Result', isWide: true, cell: ({ result }) => <Text value={result} /> },
  {
    head: 'Selection',
    cell: ({ selection, plan }) =>
      isEmpty(selection) ? (
        <span class="faint">all</span>
      ) : (
        <details class="more-text">
          <summary>Show</summary>
          <pre class="code">{jsonText(selection)}</pre>
          {plan !== null && <span class="faint small">plan {plan}</span>}
        </details>
      ),
  },
]

function isEmpty(selection: unknown): boolean {
  return typeof selection !== 'object' || selection === null || Object.keys(selection).length === 0
}
