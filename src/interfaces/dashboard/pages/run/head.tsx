import { ActionButtons } from '../../kit/action-host.tsx'
import { Age } from '../../kit/age.tsx'
import { CopyButton, CopyJson } from '../../kit/copy.tsx'
import { Link } from '../../kit/link.tsx'
import { PageHead } from '../../kit/section.tsx'
import { StatusPill } from '../../kit/status.tsx'
import { safe } from '../../model/safe.ts'
import { formatRow, shortId } from '../../model/format.ts'
import type { RunDetail } from '../../shapes.ts'

/** What it is, how it is, and what one can do about it. */
export function RunHead({ detail }: { detail: RunDetail }) {
  const { run } = detail
  return (
    <PageHead
      title={safe(run.source)}
      above={
        <>
          <Link to="/runs">Runs</Link> / <span class="mono">{shortId(run.id)}</span>
        </>
      }
      actions={<ActionButtons actions={detail.actions} />}
    >
      <div class="row">
        <StatusPill is={run.status} />
        {run.health && run.health !== 'interrupted' && (
          <StatusPill is={run.health} why={run.because && safe(run.because)} />
        )}
        <span class="faint">
          created <Age at={run.createdAt} />
        </span>
        {run.finishedAt && (
          <span class="faint">
            ended <Age at={run.finishedAt} />
          </span>
        )}
        {run.adopted && <span>{safe(formatRow(run.adopted))}</span>}
        {run.attempt > 1 && <span class="faint">attempt {run.attempt}</span>}
        {run.retryOf && (
          <span class="faint">
            again after{' '}
            <Link to={`/runs/${run.retryOf}`} class="mono">
              {shortId(run.retryOf)}
            </Link>
          </span>
        )}
        <CopyButton text={run.id} label="Copy the whole id" word="id" />
        <CopyJson value={detail} />
      </div>
    </PageHead>
  )
}
