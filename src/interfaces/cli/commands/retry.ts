import { retry } from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'
import { defineRunAction } from '../run-action.ts'

export const command = defineRunAction(retry, ['unstuck retry 4f2a91bc'], ({ next }, old) => ({
  retryOf: old.id,
  run: next && runView(next),
}))
