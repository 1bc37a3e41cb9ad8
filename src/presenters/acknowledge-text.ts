import type { ActionText } from './allowed-actions.ts'

/** How `acknowledge` is offered, or its undo. `what`: its subject. */
export function acknowledgeText(
  what: string,
  path: string,
  isAcknowledged: boolean,
  body: Record<string, unknown> = {},
): ActionText {
  return isAcknowledged
    ? {
        label: 'Undo acknowledge',
        title: `Undo the acknowledgement of ${what}`,
        about: 'It counts as needing attention again.',
        takesReason: true,
        call: { path, body: { ...body, undo: true } },
      }
    : {
        label: 'Acknowledge',
        title: `Acknowledge ${what}`,
        about:
          'Keeps everything as it is and no longer counts it as needing attention. Anything that starts it again removes the mark. It can be undone.',
        takesReason: true,
        call: { path, body },
      }
}
