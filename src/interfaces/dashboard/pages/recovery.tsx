import { useEffect } from 'preact/hooks'
import { resultOfRecovery } from '../kit/action-result.ts'
import { ActionButtons, useCompletedActions } from '../kit/action-host.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { ChangesList } from '../kit/changes-list.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { useLiveEvents } from '../live.ts'
import { plural, formatNumber } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import type { Cleaning, Recovery as Plan } from '../shapes.ts'
import { ResumableAndDead } from './recovery/resumable-and-dead.tsx'
import { LastRecoveries } from './recovery/last-recoveries.tsx'

const EVERY_MS = 5_000

/** What recovery would do at this moment, with all its reasons; the same as `unstuck recover --dry-run`. */
export function Recovery() {
  const plan = useResource<Plan>('/api/recovery', { refreshMs: EVERY_MS })
  const cleaning = useResource<Cleaning>('/api/clean', { refreshMs: 2 * EVERY_MS })
  const reload = () => {
    plan.reload()
    cleaning.reload()
  }
  useReloadAfterActions(reload)
  useLiveEvents('trail', reload)

  const result = plan.data && resultOfRecovery(plan.data)
  return (
    <>
      <PageHead
        title="Recovery"
        actions={
          <ActionButtons
            actions={[...(cleaning.data?.actions ?? []), ...(plan.data?.actions ?? [])]}
          />
        }
      >
        {result &&
          headline(result.count, result.needsAttention.length + result.omitted.needsAttention)}
      </PageHead>

      <Section
        title="What would be done now"
        note={result && result.count > 0 ? plural(result.count, 'thing') : undefined}
      >
        <Loaded of={{ ...plan, data: result }} lines={5}>
          {({ changes, omitted }) =>
            changes.length > 0 ? (
              <ChangesList of={changes} cut={omitted.changes} isUnfolded />
            ) : (
              <Empty title="Nothing to recover.">
                Whoever works is alive, and nobody dead holds anything. What dies is noticed within
                about a second wherever a worker, a command or this server runs.
              </Empty>
            )
          }
        </Loaded>
        {plan.data && (
          <div class="section-command">
            <CopyCommand
              command="unstuck recover --dry-run"
              call={{ method: 'GET', path: apiUrl('/api/recovery') }}
            />
          </div>
        )}
      </Section>

      {result && result.needsAttention.length + result.omitted.needsAttention > 0 && (
        <Section title="Needs attention" note="recovery does not decide these by itself">
          <ChangesList of={result.needsAttention} cut={result.omitted.needsAttention} isUnfolded />
        </Section>
      )}

      <Loaded of={cleaning} lines={4}>
        {(data) => <ResumableAndDead of={data} />}
      </Loaded>
      <LastRecoveries />
    </>
  )
}

/** Whether anything is stuck is the answer of the overview: a run may need attention without a verdict on it. */
function headline(planned: number, attention: number): string {
  if (planned + attention === 0) return 'Nothing to recover.'
  const what = planned === 0 ? 'Nothing' : plural(planned, 'thing')
  return `${what} would be done now${attention === 0 ? '' : `, and ${formatNumber(attention)} ${attention === 1 ? 'needs' : 'need'} attention`}.`
}

function useReloadAfterActions(reload: () => void): void {
  const deeds = useCompletedActions()
  useEffect(() => {
    if (deeds > 0) reload()
  }, [deeds])
}
