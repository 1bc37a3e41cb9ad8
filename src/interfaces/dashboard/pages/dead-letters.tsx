import { useEffect, useState } from 'preact/hooks'
import { actTogether } from '../kit/action-state.ts'
import { ActionButtons, openAction, useCompletedActions } from '../kit/actions.tsx'
import { Button } from '../kit/button.tsx'
import { CopyButton } from '../kit/copy.tsx'
import { Filters, useFilters } from '../kit/filters.tsx'
import { Icon } from '../kit/icon.tsx'
import { Link } from '../kit/link.tsx'
import { PageHead } from '../kit/section.tsx'
import { Empty, ListView, Loaded, NoMatch } from '../kit/states.tsx'
import { StatusPill } from '../kit/status.tsx'
import { numbers, Table, type Column } from '../kit/table.tsx'
import { Age, Text } from '../kit/text.tsx'
import { formatNumber, plural, safe, shortId } from '../model/format.ts'
import { useList, useResource } from '../resource.ts'
import { useHasRole } from '../session.ts'
import type { DeadLetters as Letters, DeadLetterTarget } from '../shapes.ts'

const SPEC = { q: 'one', source: 'one', acknowledged: 'one', open: 'one' } as const

/** Failed, stuck and parked targets by the kind of their error. */
export function DeadLetters() {
  const all = useFilters(SPEC)
  const { source, q, acknowledged, open } = all.filters
  // The unfolded group is in the address too, but narrows nothing.
  const state = { ...all, isFiltered: source !== '' || q !== '' || acknowledged !== '' }
  const query = new URLSearchParams({
    ...(source !== '' && { source }),
    ...(acknowledged !== '' && { acknowledged }),
  })
  const letters = useResource<Letters>(withQuery('/api/dead-letters', query), {
    refreshMs: 10_000,
    version: useCompletedActions(),
  })
  const everywhere = useResource<Letters>(source === '' ? null : '/api/dead-letters')
  const options = [
    { value: '', label: 'All' },
    ...sourcesOf(everywhere.data ?? letters.data).map((one) => ({ value: one, label: safe(one) })),
  ]
  const groups = letters.data?.groups.filter(({ error }) =>
    error.toLowerCase().includes(q.toLowerCase()),
  )
  const { total = 0, isPartial = false, actions = [] } = letters.data ?? {}
  return (
    <>
      <PageHead title="Dead letters" actions={q === '' && <ActionButtons actions={actions} />}>
        {letters.data &&
          (total === 0
            ? acknowledged
              ? 'No target is acknowledged.'
              : 'No target needs attention.'
            : `${plural(total, 'target')} with ${plural(letters.data.groups.length, 'kind')} of error.`)}
        {isPartial && ' There are more than were read: each number is a minimum.'}
      </PageHead>
      {letters.data && (
        <Filters
          label="Filter dead letters"
          state={state}
          fields={[
            { name: 'q', label: 'Search errors', kind: 'search' },
            { name: 'source', label: 'Source', kind: 'choice', options },
            { name: 'acknowledged', label: 'Show', kind: 'choice', options: SHOWN },
          ]}
        />
      )}
      <Loaded of={{ ...letters, data: groups }} lines={6}>
        {(shown) =>
          shown.length > 0 ? (
            <ul class="stack">
              {shown.map((group) => (
                <DeadLetterGroup
                  key={group.fingerprint}
                  group={group}
                  query={query}
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
                <NoMatch what="error" clear={state.clear} />
              ) : (
                <Empty title="No dead letters.">
                  Targets whose handler gave up, that took their worker down too often, or that an
                  operator parked are listed here, grouped by error. Those that were acknowledged
                  have a list of their own.
                </Empty>
              )}
            </div>
          )
        }
      </Loaded>
    </>
  )
}

const SHOWN = [
  { value: '', label: 'Needs attention' },
  { value: 'true', label: 'Acknowledged' },
]

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`
}

function sourcesOf(letters: Letters | undefined): string[] {
  return [...new Set(letters?.groups.flatMap(({ sources }) => sources))].toSorted()
}

/** One kind of error: how often, where and since when; unfolded its targets. */
function DeadLetterGroup(props: {
  group: Letters['groups'][number]
  /** Of the list: its source, and whether they are acknowledged. */
  query: URLSearchParams
  /** There are more than were counted. */
  isPartial: boolean
  isOpen: boolean
  onToggle: (isOpen: boolean) => void
}) {
  const { group, query, isPartial, isOpen, onToggle } = props
  const { fingerprint, error, count, sources, statuses, firstAt, lastAt } = group
  const [first = '', ...rest] = error.split('\n')
  return (
    <li class="frame" data-row tabIndex={-1}>
      <div class="letter-head">
        <span class="big">
          {isPartial && <span class="faint small">at least </span>}
          {formatNumber(count)}
          <span class="visually-hidden"> {count === 1 ? 'target' : 'targets'}</span>
        </span>
        <div class="stack">
          <h2 class="clamp">
            <Text value={first} mono />
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
            {(['failed', 'stuck', 'parked'] as const).map(
              (status) =>
                statuses[status] && (
                  <StatusPill key={status} is={status} count={statuses[status]} />
                ),
            )}
            {sources.map((one) => (
              <Link key={one} to={`/dead-letters?source=${encodeURIComponent(one)}`}>
                <Text value={one} />
              </Link>
            ))}
            <span class="faint">
              first <Age at={firstAt} />, last <Age at={lastAt} />
            </span>
          </div>
        </div>
        <div class="row letter-actions">
          <ActionButtons actions={group.actions} size="small" />
          <button
            type="button"
            class="button button-quiet button-small"
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
      {isOpen && <DeadLetterTargets fingerprint={fingerprint} of={query} />}
    </li>
  )
}

/** The targets of one kind of error: planned again one by one, or acknowledged or parked together. */
function DeadLetterTargets({ fingerprint, of }: { fingerprint: string; of: URLSearchParams }) {
  const canAct = useHasRole('operator')
  const query = new URLSearchParams({ ...Object.fromEntries(of), limit: '50' })
  const list = useList<DeadLetterTarget>(`/api/dead-letters/${fingerprint}/targets?${query}`)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const completedActions = useCompletedActions()
  useEffect(() => {
    if (completedActions === 0) return
    setChosen(new Set())
    list.reload()
  }, [completedActions])
  const toggle = (id: string) =>
    setChosen(new Set(chosen.has(id) ? [...chosen].filter((one) => one !== id) : [...chosen, id]))
  const checkbox = ({ id, key }: DeadLetterTarget) => (
    <input
      type="checkbox"
      aria-label={`Select ${safe(key)}`}
      checked={chosen.has(id)}
      onChange={() => toggle(id)}
    />
  )
  const name: Column<DeadLetterTarget> = {
    head: 'Target',
    isTitle: true,
    isWide: true,
    cell: (target) => (
      <span class="row">
        {canAct && checkbox(target)}
        <Link class="row-link" to={`/targets/${target.id}`}>
          <Text value={target.key} />
        </Link>
      </span>
    ),
  }
  return (
    <div class="letter-targets">
      <ListView list={list} what="target" lines={3} empty={<p class="pad faint">None is left.</p>}>
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
              columns={canAct ? [name, ...COLUMNS, BUTTONS] : [name, ...COLUMNS]}
              rows={targets}
              rowKey={({ id }) => id}
            />
          </>
        )}
      </ListView>
    </div>
  )
}

function SelectionBar(props: { targets: readonly DeadLetterTarget[]; clear: () => void }) {
  const { targets, clear } = props
  const together = (['acknowledge', 'park'] as const).flatMap((name) => {
    const own = targets.flatMap(({ actions }) => actions.filter((action) => action.name === name))
    const action = actTogether(own)
    return action ? [{ action, count: own.length }] : []
  })
  return (
    <div class="row chosen" role="status">
      <span>{plural(targets.length, 'target')} selected</span>
      {together.map(({ action, count }) => (
        <Button
          key={action.name}
          size="small"
          icon={action.name === 'park' ? 'parked' : 'check'}
          onClick={() => openAction(action)}
        >
          {`${action.label} ${formatNumber(count)}`}
        </Button>
      ))}
      <Button size="small" kind="quiet" onClick={clear}>
        Select none
      </Button>
    </div>
  )
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
  numbers('Page', ({ page }) => formatNumber(page)),
  numbers('Attempts', ({ attempts }) => formatNumber(attempts), true),
  numbers('Last seen', ({ lastActivityAt }) => <Age at={lastActivityAt} />),
]

const BUTTONS: Column<DeadLetterTarget> = {
  head: 'Actions',
  isHeadHidden: true,
  cell: ({ actions }) => (
    <div class="row">
      <ActionButtons actions={actions} size="small" />
    </div>
  ),
}
