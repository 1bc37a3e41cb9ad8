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

export function transactionOpen(): HttpError {
  return new HttpError(
    409,
    'TRANSACTION_OPEN',
    'This target has a transaction of yours. End it first: COMMIT or ROLLBACK, then POST /targets/:id/transaction/end.',
  )
}

export function noTransaction(): HttpError {
  return new HttpError(
    409,
    'NO_TRANSACTION',
    'This target has no transaction of yours: it begins with POST /targets/:id/transaction.',
  )
}

export function needsPostgres(message: string): HttpError {
  return new HttpError(501, 'NEEDS_POSTGRES', message)
}
