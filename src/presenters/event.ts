import type { UnstuckEvent } from '../core/model/event.ts'
import { shortId } from '../core/model/id.ts'
import { humanizeDuration } from '../core/model/time.ts'
import { formatVerdict } from '../core/model/verdict.ts'

/** An event as a sentence for the log; null for those too frequent to read. */
export function describeEvent(event: UnstuckEvent): string | null {
  switch (event.type) {
    case 'worker_start':
      return `working on ${event.source} (process ${event.pid}, presence: ${describePresence(event.presence)})`
    case 'worker_stop':
      return `stopped: ${event.reason}`
    case 'run_start':
      return `new run ${shortId(event.run)} of ${event.source}`
    case 'run_planned':
      return `run ${shortId(event.run)} is planned: ${event.targets} new targets`
    case 'run_end':
      return `run ${shortId(event.run)} ${event.status}`
    case 'target_error': {
      const then =
        event.retryInMs === null
          ? 'gave up'
          : `trying again in ${humanizeDuration(event.retryInMs)}`
      return `${event.key} page ${event.page}: ${event.error} — ${then}`
    }
    case 'text_replaced':
      return `${event.key} page ${event.page}: ${event.count} characters that cannot be stored (NUL, lone surrogates) were replaced by U+FFFD`
    case 'target_released':
      return `${event.key} released after page ${event.page}`
    case 'lease_lost':
      return `${event.key} dropped: ${event.because}`
    case 'recovery':
      return formatVerdict(event.verdict)
    case 'alert': {
      const what = event.target ? `target ${shortId(event.target)}` : `run ${shortId(event.run)}`
      return `ALERT: ${what} of ${event.source}: ${event.because}. See: ${event.command}`
    }
    case 'store_error':
      return `database error: ${event.message}`
    case 'store_recovered':
      return `database reachable again after ${humanizeDuration(event.afterMs)}`
    case 'target_start':
    case 'page_complete':
    case 'target_complete':
    case 'heartbeat':
      return null
  }
}

function describePresence(kind: string): string {
  if (kind === 'file') return 'lock file'
  return kind === 'session' ? 'database session' : 'heartbeats alone'
}
