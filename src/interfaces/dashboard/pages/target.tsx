import { ActionButtons, useCompletedActions } from '../kit/actions.tsx'
import { Age, OutsideLink, Text, WorkerName } from '../kit/text.tsx'
import { CopyButton, CopyJson } from '../kit/copy.tsx'
import { ExplanationDetails } from '../kit/explanation.tsx'
import { Link } from '../kit/link.tsx'
import { Facts, PageHead, Section } from '../kit/section.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { StatusPill } from '../kit/status.tsx'
import { formatNumber, jsonText, safe, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { navigate } from '../router.ts'
import type { Explanation, Target, TargetDetail } from '../shapes.ts'
import { Timeline } from '../kit/timeline.tsx'

const FRESH_MS = 3_000

/** Everything about one target: where it stands, who has it, why it failed, what was done to it. */
export function TargetPage({ id }: { id: string }) {
  const detail = useResource<TargetDetail>(`/api/targets/${id}`, {
    refreshMs: FRESH_MS,
    version: useCompletedActions(),
  })
  if (!detail.data) {
    if (detail.error?.status === 404) return <NoSuchTarget id={id} />
    return detail.error ? (
      <Failure error={detail.error} retry={detail.reload} />
    ) : (
      <Loading lines={8} />
    )
  }
  const { target, explanation } = detail.data
  return (
    <>
      <TargetHead detail={detail.data} />
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
          <span class="mono">{shortId(target.id)}</span>
        </>
      }
      actions={<ActionButtons actions={detail.actions} />}
    >
      <div class="row">
        <StatusPill is={target.status} />
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

/** The first line says it; the stack is for who wants it. */
function LastError({ error }: { error: string }) {
  const [first, ...rest] = safe(error).split('\n')
  return (
    <Section title="Last error" aside={<CopyButton text={error} label="Copy the error" />}>
      <div class="pad stack">
        <p class="run-error">{first}</p>
        {rest.length > 0 && (
          <details>
            <summary class="faint">The rest of it</summary>
            <pre class="code">{rest.join('\n')}</pre>
          </details>
        )}
      </div>
    </Section>
  )
}

function Position({ target }: { target: Target }) {
  return (
    <Section title="Cursor" note="where the next worker picks up">
      <div class="pad stack">
        <Facts
          of={[
            ['Last page', formatPage(target)],
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
            <summary>Its own notes</summary>
            <pre class="code">{jsonText(target.cursor)}</pre>
          </details>
        )}
      </div>
    </Section>
  )
}

function formatPage({ page, pageTarget }: Target): string {
  return pageTarget === null
    ? formatNumber(page)
    : `${formatNumber(page)} of ${formatNumber(pageTarget)}`
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
              ['Who', <WorkerName is={owner} />],
              ['Sign of life', <StatusPill is={owner.liveness} why={safe(owner.because)} />],
              ['Last beat', <Age at={owner.lastHeartbeatAt} />],
            ] as const)
          : []),
      ]}
    />
  )
}

function NoSuchTarget({ id }: { id: string }) {
  return (
    <>
      <PageHead title="No such target" />
      <Empty
        title={`There is no target ${id} in this database.`}
        icon="question"
        action={{ label: 'All runs', onClick: () => navigate('/runs') }}
      />
    </>
  )
}
