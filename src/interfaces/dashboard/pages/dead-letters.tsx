import { useEffect } from 'preact/hooks'
import { ActionButtons, useCompletedActions } from '../kit/action-host.tsx'
import { Filters, useFilters } from '../kit/filters.tsx'
import { PageHead } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { safe } from '../model/safe.ts'
import { plural } from '../model/format.ts'
import { useResource } from '../resource.ts'
import type { DeadLetters as Answer } from '../shapes.ts'
import { DeadLetterGroup } from './dead-letters/group.tsx'

const SPEC = { q: 'one', source: 'one', open: 'one' } as const

/** What was given up, held or parked, by the kind of its error: one mistake is one line, however often it struck. */
export function DeadLetters() {
  const all = useFilters(SPEC)
  const { source, q, open } = all.filters
  // What is unfolded is kept in the address too, but narrows nothing.
  const state = { ...all, isFiltered: source !== '' || q !== '' }
  const query = source === '' ? '' : `?source=${encodeURIComponent(source)}`
  const letters = useResource<Answer>(`/api/dead-letters${query}`, { refreshMs: 10_000 })
  const everywhere = useResource<Answer>(source === '' ? null : '/api/dead-letters')
  const completedActions = useCompletedActions()
  useEffect(() => {
    if (completedActions > 0) letters.reload()
  }, [completedActions])

  const sources = sourcesOf(everywhere.data ?? letters.data)
  const groups = letters.data?.groups.filter(({ error }) =>
    error.toLowerCase().includes(q.toLowerCase()),
  )
  const { total = 0, isPartial = false } = letters.data ?? {}
  return (
    <>
      <PageHead
        title="Dead letters"
        actions={q === '' && <ActionButtons actions={letters.data?.actions ?? []} />}
      >
        {letters.data &&
          (total === 0
            ? 'Nothing failed, is held or parked.'
            : `${plural(total, 'target')} with ${plural(letters.data.groups.length, 'kind')} of error.`)}
        {isPartial && ' There are more than were looked at: each number is the least it can be.'}
      </PageHead>
      {(total > 0 || state.isFiltered) && (
        <Filters
          label="Filter dead letters"
          state={state}
          fields={[
            { name: 'q', label: 'Search errors', kind: 'search' },
            {
              name: 'source',
              label: 'Source',
              kind: 'choice',
              options: [
                { value: '', label: 'All' },
                ...sources.map((one) => ({ value: one, label: safe(one) })),
              ],
            },
          ]}
        />
      )}
      <Loaded of={{ ...letters, data: groups }} lines={6}>
        {(shown) =>
          shown.length > 0 ? (
            <ul class="letters">
              {shown.map((group) => (
                <DeadLetterGroup
                  key={group.fingerprint}
                  group={group}
                  source={source}
                  isPartial={isPartial}
                  isOpen={open === group.fingerprint}
                  onToggle={(isOpen) =>
                    state.set({ open: isOpen ? group.fingerprint : '' }, { replace: true })
                  }
                />
              ))}
            </ul>
          ) : (
            <div class="frame">
              {state.isFiltered ? (
                <Empty
                  title="No error fits the filters."
                  icon="search"
                  action={{ label: 'Clear filters', onClick: state.clear }}
                />
              ) : (
                <Empty title="No dead letters.">
                  Targets whose handler gave up, that took their worker down too often, or that
                  somebody set aside would be here, grouped by error.
                </Empty>
              )}
            </div>
          )
        }
      </Loaded>
    </>
  )
}

function sourcesOf(letters: Answer | undefined): string[] {
  return [...new Set(letters?.groups.flatMap(({ sources }) => sources))].toSorted()
}
