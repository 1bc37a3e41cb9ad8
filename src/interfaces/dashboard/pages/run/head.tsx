import { act } from '../../kit/act.tsx'
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
import { Status } from '../../kit/status.tsx'
import { fitting } from '../../model/allowed-actions.ts'
import { safe } from '../../model/safe.ts'
import { rowWords, shortId } from '../../model/format.ts'
import { useMay } from '../../session.ts'
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
        <Status is={run.status} />
        {run.health && run.health !== 'interrupted' && (
          <Status is={run.health} why={run.because && safe(run.because)} />
        )}
        <span class="faint">
          created <Age at={run.createdAt} />
        </span>
        {run.finishedAt && (
          <span class="faint">
            ended <Age at={run.finishedAt} />
          </span>
        )}
        {run.adopted && <span>{safe(rowWords(run.adopted))}</span>}
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
  const mayOperate = useMay('operator')
  const mayDelete = useMay('admin')
  const { run } = detail
  const fits = fitting(detail)
  if (!mayOperate) return null
  return (
    <>
      {fits.resume && (
        <Button kind="primary" icon="play" onClick={() => act(resumeRun(run))}>
          Resume
        </Button>
      )}
      {fits.resetFailed && (
        <Button icon="again" onClick={() => act(resetFailed(run))}>
          Reset failed
        </Button>
      )}
      {fits.unpark && (
        <Button icon="parked" onClick={() => act(unparkRun(run))}>
          Unpark
        </Button>
      )}
      {fits.retry && (
        <Button icon="again" onClick={() => act(retryRun(run))}>
          Retry from nothing
        </Button>
      )}
      {fits.revert && (
        <Button icon="undo" onClick={() => act(revertRun(run))}>
          Revert
        </Button>
      )}
      {fits.cancel && (
        <Button icon="stop" onClick={() => act(cancelRun(run))}>
          Cancel
        </Button>
      )}
      {fits.delete && mayDelete && (
        <Button kind="danger" icon="trash" onClick={() => act(deleteRun(run))}>
          Delete
        </Button>
      )}
    </>
  )
}
