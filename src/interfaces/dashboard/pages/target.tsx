import { act, useDeeds } from '../kit/act.tsx'
import { parkTargets, resetTarget, rewindTarget, unparkTarget } from '../kit/actions.ts'
import { Age } from '../kit/age.tsx'
import { Button } from '../kit/button.tsx'
import { CopyButton, CopyJson } from '../kit/copy.tsx'
import { Explained } from '../kit/explained.tsx'
import { Link } from '../kit/link.tsx'
import { Facts, PageHead, Section } from '../kit/section.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { Status } from '../kit/status.tsx'
import { OutsideLink, Text } from '../kit/text.tsx'
import { Who } from '../kit/worker-name.tsx'
import { fittingTarget } from '../model/allowed-actions.ts'
import { jsonText, safe } from '../model/safe.ts'
import { number, shortId } from '../model/format.ts'
import { useResource } from '../resource.ts'
import { navigate } from '../router.ts'
import { useMay } from '../session.ts'
import type { Explanation, Run, Target } from '../shapes.ts'
import { Timeline } from './run/timeline.tsx'

type Detail = { target: Target; run: Run; explanation: Explanation }

const FRESH_MS = 3_000

/** Everything about one target: where it stands, who has it, why it failed, what was done to it. */
export function TargetPage({ id }: { id: string }) {
  const detail = useResource<Detail>(`/api/targets/${id}`, { everyMs: FRESH_MS, round: useDeeds() })
  if (!detail.data) {
    if (detail.error?.status === 404) return <NoSuchTarget id={id} />
    return detail.error ? (
      <Failure error={detail.error} retry={detail.reload} />
    ) : (
      <Loading lines={8} />
    )
  }
  const { target, run, explanation } = detail.data
  return (
    <>
      <TargetHead target={target} run={run} detail={detail.data} />
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
            <Explained explanation={explanation} />
          </Section>
          <Timeline audit={explanation.trail} executions={[]} />
        </div>
      </div>
    </>
  )
}

function TargetHead({ target, run, detail }: { target: Target; run: Run; detail: Detail }) {
  return (
    <PageHead
      title={safe(target.key)}
      above={
        <>
          <Link to="/runs">Runs</Link> / <Link to={`/runs/${run.id}`}>{safe(run.source)}</Link> /{' '}
          <span class="mono">{shortId(target.id)}</span>
        </>
      }
      actions={<TargetActions target={target} run={run} />}
    >
      <div class="row">
        <Status is={target.status} />
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

function TargetActions({ target, run }: { target: Target; run: Run }) {
  const may = useMay('operator')
  if (!may) return null
  const { adopted } = run
  const fits = fittingTarget(target, run)
  return (
    <>
      {fits.reset && (
        <Button icon="again" kind="primary" onClick={() => act(resetTarget(target, adopted))}>
          Reset
        </Button>
      )}
      {fits.unpark && (
        <Button icon="play" kind="primary" onClick={() => act(unparkTarget(target, adopted))}>
          Unpark
        </Button>
      )}
      {fits.park && (
        <Button icon="parked" onClick={() => act(parkTargets([target], adopted))}>
          Park
        </Button>
      )}
      {fits.rewind && (
        <Button icon="undo" onClick={() => act(rewindTarget(target))}>
          Rewind
        </Button>
      )}
    </>
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
            ['Last page', pageWords(target)],
            [
              'Last item',
              target.lastItemId === null ? '–' : <Text value={target.lastItemId} mono />,
            ],
            ['Attempts', number(target.attempts)],
            ['Crashes since its last page', number(target.crashes)],
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

function pageWords({ page, pageTarget }: Target): string {
  return pageTarget === null ? number(page) : `${number(page)} of ${number(pageTarget)}`
}

function Claim({ target, explanation: { heldBy } }: { target: Target; explanation: Explanation }) {
  if (target.worker === null) return <p class="faint">No worker holds it.</p>
  return (
    <Facts
      of={[
        ['Worker', <span class="mono">{shortId(target.worker)}</span>],
        ['Claimed', <Age at={target.claimedAt} />],
        ...(heldBy
          ? ([
              ['Who', <Who is={heldBy} />],
              ['Sign of life', <Status is={heldBy.sign} why={safe(heldBy.because)} />],
              ['Last beat', <Age at={heldBy.lastBeatAt} />],
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
