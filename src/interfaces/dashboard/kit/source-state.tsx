import { pauseReason } from '../../../core/model/run.ts'
import { safe } from '../model/format.ts'
import type { Source } from '../shapes.ts'
import { StatusPill } from './status.tsx'
import { Age } from './text.tsx'

/** Whether a source is paused, and when its command starts again; nothing if neither. */
export function SourceState({ of: { paused, nextStartAt } }: { of: Source }) {
  if (!paused && nextStartAt === null) return null
  return (
    <span class="row">
      {paused && (
        <>
          <StatusPill is="paused" />
          <span class="soft small">
            <Age at={paused.since} />
            {safe(pauseReason(paused))}
          </span>
        </>
      )}
      {nextStartAt !== null && (
        <span class="soft small">
          next start <Age at={nextStartAt} />
          {paused && ', if unpaused'}
        </span>
      )}
    </span>
  )
}
