import { useEffect, useState } from 'preact/hooks'
import { ActionButtons, openAction, useCompletedActions } from '../kit/actions.tsx'
import { Filters, useFilters } from '../kit/filters.tsx'
import { PageHead } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { formatNumber, plural, safe, shortId } from '../model/format.ts'
import { useList, useResource } from '../resource.ts'
import type { DeadLetters, DeadLetters as Answer, DeadLetterTarget } from '../shapes.ts'
import { Age, Text } from '../kit/text.tsx'
import { CopyButton } from '../kit/copy.tsx'
import { Icon } from '../kit/icon.tsx'
import { Link } from '../kit/link.tsx'
import { Pill, STATUS_STYLES, StatusPill } from '../kit/status.tsx'
import { parkTogether } from '../kit/actions.ts'
import { Button } from '../kit/button.tsx'
import { type Column, More, Table } from '../kit/table.tsx'
import { useHasRole } from '../session.ts'

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

type Group = DeadLetters['groups'][number]

/** One kind of error: how often, where, since when; unfolded its targets. */
function DeadLetterGroup(props: {
  group: Group
  /** Only of this source; empty: of all. */
  source: string
  /** There are more than were counted. */
  isPartial: boolean
  isOpen: boolean
  onToggle: (isOpen: boolean) => void
}) {
  const { group, source, isPartial, isOpen, onToggle } = props
  const { fingerprint, error, count, sources, firstAt, lastAt } = group
  const [first, ...rest] = error.split('\n')
  return (
    <li class="letter frame" data-row tabIndex={-1}>
      <div class="letter-head">
        <span class="letter-count">
          {isPartial && <span class="faint small">at least </span>}
          {formatNumber(count)}
          <span class="visually-hidden"> {count === 1 ? 'target' : 'targets'}</span>
        </span>
        <div class="letter-words">
          <h2 class="clamp">
            <Text value={first ?? ''} mono />
          </h2>
          {rest.length > 0 && (
            <details class="more-text">
              <summary>The whole error</summary>
              <pre class="code">
                <Text value={error} />
              </pre>
              <CopyButton text={error} label="Copy the error" word="Copy" />
            </details>
          )}
          <div class="row small">
            {(['failed', 'stuck', 'parked'] as const).map((status) => {
              const own = group.statuses[status] ?? 0
              const { tone, icon, label } = STATUS_STYLES[status]
              return own === 0 ? null : (
                <Pill
                  key={status}
                  tone={tone}
                  icon={icon}
                  label={`${formatNumber(own)} ${label}`}
                />
              )
            })}
            <span class="row">
              {sources.map((one) => (
                <Link key={one} to={`/dead-letters?source=${encodeURIComponent(one)}`}>
                  <Text value={one} />
                </Link>
              ))}
            </span>
            <span class="faint">
              first <Age at={firstAt} />, last <Age at={lastAt} />
            </span>
          </div>
        </div>
        <div class="actions letter-actions">
          <ActionButtons actions={group.actions} size="small" />
          <button
            type="button"
            class="button button-quiet button-small letter-toggle"
            aria-expanded={isOpen}
            onClick={() => onToggle(!isOpen)}
          >
            <Icon name={isOpen ? 'down' : 'right'} />
            <span>
              {isOpen ? 'Hide' : 'Show'}{' '}
              <span class="visually-hidden">{plural(count, 'target')} of this error, </span>targets
            </span>
          </button>
        </div>
      </div>
      {isOpen && <DeadLetterTargets fingerprint={fingerprint} source={source} />}
    </li>
  )
}

/** The targets of one kind of error, by pages: retried one by one, or set aside together. */
function DeadLetterTargets({ fingerprint, source }: { fingerprint: string; source: string }) {
  const canAct = useHasRole('operator')
  const query = new URLSearchParams({ limit: '50', ...(source !== '' && { source }) })
  const list = useList<DeadLetterTarget>(`/api/dead-letters/${fingerprint}/targets?${query}`)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const completedActions = useCompletedActions()
  useEffect(() => {
    if (completedActions === 0) return
    setChosen(new Set())
    list.reload()
  }, [completedActions])
  const choose = (id: string, isChosen: boolean) => {
    const next = new Set(chosen)
    if (isChosen) next.add(id)
    else next.delete(id)
    setChosen(next)
  }
  return (
    <div class="letter-targets">
      <Loaded of={{ ...list, data: list.items }} lines={3}>
        {(targets) => (
          <>
            {chosen.size > 0 && (
              <SelectionBar
                targets={targets.filter(({ id }) => chosen.has(id))}
                clear={() => setChosen(new Set())}
              />
            )}
            <Table
              caption="Targets with this error"
              columns={
                canAct
                  ? [nameOf(chosen, choose), ...COLUMNS, BUTTONS]
                  : [nameOf(null, choose), ...COLUMNS]
              }
              rows={targets}
              rowKey={({ id }) => id}
            />
            <More list={list} what="targets" />
          </>
        )}
      </Loaded>
    </div>
  )
}

function SelectionBar(props: { targets: readonly DeadLetterTarget[]; clear: () => void }) {
  const { targets, clear } = props
  const parks = targets.flatMap(({ actions }) => actions.filter(({ name }) => name === 'park'))
  const park = parkTogether(parks)
  return (
    <div class="row chosen" role="status">
      <span>{plural(targets.length, 'target')} selected</span>
      {park ? (
        <Button size="small" icon="parked" onClick={() => openAction(park)}>
          {`${park.label} ${formatNumber(parks.length)}`}
        </Button>
      ) : (
        <span class="faint">parked already</span>
      )}
      <Button size="small" kind="quiet" onClick={clear}>
        Select none
      </Button>
    </div>
  )
}

/** The target's key; with a box to select it where something can be done with a selection. */
function nameOf(
  chosen: ReadonlySet<string> | null,
  choose: (id: string, isChosen: boolean) => void,
): Column<DeadLetterTarget> {
  return {
    head: 'Target',
    isTitle: true,
    isWide: true,
    cell: ({ id, key }) => (
      <span class="row">
        {chosen && (
          <input
            type="checkbox"
            aria-label={`Select ${safe(key)}`}
            checked={chosen.has(id)}
            onChange={(event) => choose(id, event.currentTarget.checked)}
          />
        )}
        <Link class="row-link" to={`/targets/${id}`}>
          <Text value={key} />
        </Link>
      </span>
    ),
  }
}

const COLUMNS: readonly Column<DeadLetterTarget>[] = [
  {
    head: 'Run',
    cell: ({ run }) => (
      <Link class="mono" to={`/runs/${run}`}>
        {shortId(run)}
      </Link>
    ),
  },
  { head: 'Status', cell: ({ status, lastError }) => <StatusPill is={status} why={lastError} /> },
  { head: 'Page', isNumber: true, cell: ({ page }) => formatNumber(page) },
  {
    head: 'Attempts',
    isNumber: true,
    isExtra: true,
    cell: ({ attempts }) => formatNumber(attempts),
  },
  { head: 'Last seen', isNumber: true, cell: ({ lastActivityAt }) => <Age at={lastActivityAt} /> },
]

const BUTTONS: Column<DeadLetterTarget> = {
  head: 'Actions',
  isHeadHidden: true,
  cell: ({ actions }) => (
    <div class="actions">
      <ActionButtons actions={actions} size="small" />
    </div>
  ),
}
