import { HttpError } from '../../../lib/http/errors.ts'

export function runEnded(): HttpError {
  return new HttpError(
    409,
    'RUN_ENDED',
    'This run has already ended: it takes no more targets. Nothing was planned; end the command.',
  )
}

export function notPlanner(): HttpError {
  return new HttpError(
    409,
    'NOT_PLANNER',
    'Another worker plans this run. Only the one that got `"planner": true` from POST /planning ends the planning.',
  )
}
