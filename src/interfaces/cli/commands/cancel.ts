import { cancel } from '../../../presenters/run-actions.ts'
import { defineRunAction } from '../run-action.ts'

export const command = defineRunAction(cancel, [
  'unstuck cancel 4f2a91bc',
  'unstuck cancel 4f2a91bc --because "wrong city list"',
])
