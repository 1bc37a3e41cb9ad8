import { resume } from '../../../presenters/run-actions.ts'
import { defineRunAction } from '../run-action.ts'

export const command = defineRunAction(
  resume,
  ['unstuck resume 4f2a91bc', 'unstuck resume 4f2a91bc --dry-run'],
  ({ reopened }) => ({ reopened }),
)
