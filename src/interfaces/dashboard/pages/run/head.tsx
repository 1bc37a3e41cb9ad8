import { openAction } from '../../kit/action-host.tsx'
import {
  cancelRun,
  deleteRun,
  resetFailed,
  resumeRun,
  retryRun,
  revertRun,
  unparkRun,
} from '../../kit/actions.ts'
import { Age } from '../../kit/age.tsx'
import { Button } from '../../kit/button.tsx'
import { CopyButton, CopyJson } from '../../kit/copy.tsx'
import { Link } from '../../kit/link.tsx'
import { PageHead } from '../../kit/section.tsx'
import { StatusPill } from '../../kit/status.tsx'
import { allowedActions } from '../../model/allowed-actions.ts'
import { safe } from '../../model/safe.ts'
import { formatRow, shortId } from '../../model/format.ts'
import { useHasRole } from '../../session.ts'
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
      actions={<RunActions detail={detail} />}
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

function RunActions({ detail }: { detail: RunDetail }) {
  const canOperate = useHasRole('operator')
  const canDelete = useHasRole('admin')
  const { run } = detail
  const allowed = allowedActions(detail)
  if (!canOperate) return null
  return (
    <>
      {allowed.resume && (
        <Button kind="primary" icon="play" onClick={() => openAction(resumeRun(run))}>
          Resume
        </Button>
      )}
      {allowed.resetFailed && (
        <Button icon="again" onClick={() => openAction(resetFailed(run))}>
          Reset failed
        </Button>
      )}
      {allowed.unpark && (
        <Button icon="parked" onClick={() => openAction(unparkRun(run))}>
          Unpark
        </Button>
      )}
      {allowed.retry && (
        <Button icon="again" onClick={() => openAction(retryRun(run))}>
          Retry from nothing
        </Button>
      )}
      {allowed.revert && (
        <Button icon="undo" onClick={() => openAction(revertRun(run))}>
          Revert
        </Button>
      )}
      {allowed.cancel && (
        <Button icon="stop" onClick={() => openAction(cancelRun(run))}>
          Cancel
        </Button>
      )}
      {allowed.delete && canDelete && (
        <Button kind="danger" icon="trash" onClick={() => openAction(deleteRun(run))}>
          Delete
        </Button>
      )}
    </>
  )
}
