import { useEffect, useState } from 'preact/hooks'
import { ActionButtons, openAction, useCompletedActions } from '../../kit/action-host.tsx'
import { parkTogether } from '../../kit/actions.ts'
import { Age } from '../../kit/age.tsx'
import { Button } from '../../kit/button.tsx'
import { Link } from '../../kit/link.tsx'
import { More } from '../../kit/more.tsx'
import { Loaded } from '../../kit/states.tsx'
import { StatusPill } from '../../kit/status.tsx'
import { Table, type Column } from '../../kit/table.tsx'
import { Text } from '../../kit/text.tsx'
import { safe } from '../../model/safe.ts'
import { plural, formatNumber, shortId } from '../../model/format.ts'
import { useList } from '../../resource.ts'
import { useHasRole } from '../../session.ts'
import type { DeadLetterTarget } from '../../shapes.ts'

/** The targets of one kind of error, by pages: retried one by one, or set aside together. */
export function DeadLetterTargets({
  fingerprint,
  source,
}: {
  fingerprint: string
  source: string
}) {
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
