import { useEffect } from 'preact/hooks'
import { resultOfRecovery } from '../kit/action-result.ts'
import { ActionButtons, useCompletedActions } from '../kit/action-host.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { ChangesList } from '../kit/changes-list.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { useLiveEvents } from '../live.ts'
import { plural } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import type { Cleaning, Recovery as Plan } from '../shapes.ts'
import { ResumableAndDead } from './recovery/resumable-and-dead.tsx'
import { LastRecoveries } from './recovery/last-recoveries.tsx'

const EVERY_MS = 5_000

/** What recovery would apply now, with reasons; the same as `unstuck recover --dry-run`. */
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
        {result?.summary}
      </PageHead>

      <Section
        title="Would be applied"
        note={result && result.count > 0 ? plural(result.count, 'verdict') : undefined}
      >
        <Loaded of={{ ...plan, data: result }} lines={5}>
          {({ changes, omitted }) =>
            changes.length > 0 ? (
              <ChangesList of={changes} cut={omitted.changes} isUnfolded />
            ) : (
              <Empty title="Nothing to recover.">
                All workers are alive, and no dead worker holds a target. A worker that dies is
                noticed within about a second where a worker, a command or this server runs.
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

function useReloadAfterActions(reload: () => void): void {
  const deeds = useCompletedActions()
  useEffect(() => {
    if (deeds > 0) reload()
  }, [deeds])
}
