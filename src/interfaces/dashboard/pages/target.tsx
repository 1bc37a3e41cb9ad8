import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { Position } from '../kit/position.tsx'
import { Age, WorkerName } from '../kit/text.tsx'
import { CopyButton, CopyJson } from '../kit/copy.tsx'
import { ExplanationDetails } from '../kit/explanation.tsx'
import { Link } from '../kit/link.tsx'
import { Facts, PageHead, Section } from '../kit/section.tsx'
import { Loaded, Missing } from '../kit/states.tsx'
import { StatusPill } from '../kit/status.tsx'
import { runId, safe, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import type { Explanation, Target, TargetDetail } from '../shapes.ts'
import { Timeline } from '../kit/history.tsx'

const REFRESH_MS = 3_000

/** One target: its position, its claim, its error, its verdict and its history. */
export function TargetPage({ id }: { id: string }) {
  const detail = useResource<TargetDetail>(`/api/targets/${id}`, {
    refreshMs: REFRESH_MS,
    version: useCompletedActions(),
  })
  return (
    <Loaded of={detail} lines={8} missing={<Missing what="target" id={id} />}>
      {(shown) => <TargetDetails detail={shown} />}
    </Loaded>
  )
}

function TargetDetails({ detail }: { detail: TargetDetail }) {
  const { target, explanation } = detail
  return (
    <>
      <TargetHead detail={detail} />
      <div class="run-grid">
        <div class="run-main">
          {target.lastError !== null && <LastError error={target.lastError} />}
          <Position target={target} />
          <Section title="Claim">
            <div class="pad">
              <Claim target={target} explanation={explanation} />
            </div>
          </Section>
        </div>
        <div class="run-side">
          <Section title="Why">
            <ExplanationDetails explanation={explanation} />
          </Section>
          <Timeline audit={explanation.trail} executions={[]} />
        </div>
      </div>
    </>
  )
}

function TargetHead({ detail }: { detail: TargetDetail }) {
  const { target, run } = detail
  return (
    <PageHead
      title={safe(target.key)}
      above={
        <>
          <Link to="/runs">Runs</Link> / <Link to={`/runs/${run.id}`}>{safe(run.source)}</Link> /{' '}
          <span class="mono">{runId(target)}</span>
        </>
      }
      actions={<ActionButtons actions={detail.actions} />}
    >
      <div class="row">
        <StatusPill is={target.status} />
        {target.acknowledged && <StatusPill is="acknowledged" />}
        {target.group !== null && (
          <Link to={`/runs/${run.id}?group=${encodeURIComponent(target.group)}#targets`}>
            {safe(target.group)}
          </Link>
        )}
        <span class="faint">
          last progress <Age at={target.lastActivityAt} />
        </span>
        <CopyButton text={target.id} label="Copy the whole id" word="id" />
        <CopyJson value={detail} />
      </div>
    </PageHead>
  )
}

/** The first line; the stack is folded. */
function LastError({ error }: { error: string }) {
  const [first, ...rest] = safe(error).split('\n')
  return (
    <Section title="Last error" aside={<CopyButton text={error} label="Copy the error" />}>
      <div class="pad stack">
        <p class="error">{first}</p>
        {rest.length > 0 && (
          <details>
            <summary class="faint">Stack</summary>
            <pre class="code">{rest.join('\n')}</pre>
          </details>
        )}
      </div>
    </Section>
  )
}

function Claim({ target, explanation: { owner } }: { target: Target; explanation: Explanation }) {
  if (target.worker === null) return <p class="faint">No worker holds it.</p>
  return (
    <Facts
      of={[
        ['Worker', <span class="mono">{shortId(target.worker)}</span>],
        ['Claimed', <Age at={target.claimedAt} />],
        ...(owner
          ? ([
              ['Process', <WorkerName is={owner} />],
              ['Liveness', <StatusPill is={owner.liveness} why={safe(owner.because)} />],
              ['Last heartbeat', <Age at={owner.lastHeartbeatAt} />],
            ] as const)
          : []),
      ]}
    />
  )
}
