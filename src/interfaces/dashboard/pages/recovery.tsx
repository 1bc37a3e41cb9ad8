import { useEffect } from 'preact/hooks'
import { accountOfRecovery } from '../kit/action-result.ts'
import { act, useDeeds } from '../kit/act.tsx'
import { clean, recover } from '../kit/actions.ts'
import { Button } from '../kit/button.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Deeds } from '../kit/changes-list.tsx'
import { PageHead, Section } from '../kit/section.tsx'
import { Empty, Loaded } from '../kit/states.tsx'
import { useLiveEvents } from '../live.ts'
import { counted, number } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { apiUrl } from '../router.ts'
import { useMay } from '../session.ts'
import type { Cleaning, Recovery as Plan } from '../shapes.ts'
import { ResumableAndDead } from './recovery/resumable-and-dead.tsx'
import { LastRecoveries } from './recovery/last-recoveries.tsx'

const EVERY_MS = 5_000

/** What recovery would do at this moment, with all its reasons; the same as `unstuck recover --dry-run`. */
export function Recovery() {
  const may = useMay('operator')
  const plan = useResource<Plan>('/api/recovery', { everyMs: EVERY_MS })
  const cleaning = useResource<Cleaning>('/api/clean', { everyMs: 2 * EVERY_MS })
  const reload = () => {
    plan.reload()
    cleaning.reload()
  }
  useOnDeeds(reload)
  useLiveEvents('trail', reload)

  const account = plan.data && accountOfRecovery(plan.data)
  const dead = cleaning.data?.dead.length ?? 0
  return (
    <>
      <PageHead
        title="Recovery"
        actions={
          may && (
            <>
              {dead > 0 && (
                <Button icon="broom" onClick={() => act(clean())}>
                  {`Clean ${counted(dead, 'dead run')}`}
                </Button>
              )}
              {account && account.count > 0 && (
                <Button kind="primary" icon="bolt" onClick={() => act(recover())}>
                  {`Recover ${number(account.count)}`}
                </Button>
              )}
            </>
          )
        }
      >
        {account && headline(account.count, account.left.length + account.cut.left)}
      </PageHead>

      <Section
        title="What would be done now"
        note={account && account.count > 0 ? counted(account.count, 'thing') : undefined}
      >
        <Loaded of={{ ...plan, data: account }} lines={5}>
          {({ deeds, cut }) =>
            deeds.length > 0 ? (
              <Deeds of={deeds} cut={cut.deeds} isUnfolded />
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

      {account && account.left.length + account.cut.left > 0 && (
        <Section title="Left to you" note="recovery does not decide these by itself">
          <Deeds of={account.left} cut={account.cut.left} isUnfolded />
        </Section>
      )}

      <Loaded of={cleaning} lines={4}>
        {(data) => <ResumableAndDead of={data} />}
      </Loaded>
      <LastRecoveries />
    </>
  )
}

function headline(deeds: number, left: number): string {
  if (deeds + left === 0) return 'Nothing is stuck.'
  const mine = deeds === 0 ? 'Nothing' : counted(deeds, 'thing')
  return `${mine} would be done now${left === 0 ? '' : `, and ${number(left)} left to you`}.`
}

function useOnDeeds(reload: () => void): void {
  const deeds = useDeeds()
  useEffect(() => {
    if (deeds > 0) reload()
  }, [deeds])
}
