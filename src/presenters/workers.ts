import type { Assessment } from '../core/recovery/assess.ts'
import { workerView, type WorkerView } from './view.ts'

/** Workers that have not ended. A process of no source that holds nothing is left out: a server, or code between two runs. */
export function workerViews({ workers }: Pick<Assessment, 'workers'>): WorkerView[] {
  return workers
    .filter(({ worker, targets }) => worker.source !== '' || targets > 0)
    .map(workerView)
}
