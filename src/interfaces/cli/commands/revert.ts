import { revert } from '../../../presenters/run-actions.ts'
import { defineRunAction } from '../run-action.ts'

export const command = defineRunAction(
  revert,
  ['unstuck revert 4f2a91bc --dry-run', 'unstuck revert 4f2a91bc'],
  ({ undid }) => ({ undid }),
)
