import { shellWord } from '../../../lib/text/shell-command.ts'
import { plural } from '../model/format.ts'
import type { AllowedAction } from '../shapes.ts'
import type { ActionResult } from './action-result.ts'

/** Values of an action's fields, by name. */
export type Input = Readonly<Record<string, number | boolean>>

/** The body of the call that applies what was shown; it is also copied as curl. */
export function bodyOf(
  { call }: AllowedAction,
  input: Input,
  { shown, because }: { readonly shown: ActionResult; readonly because: string },
): Record<string, unknown> {
  return {
    ...call.body,
    ...input,
    ...(shown.plan !== null && { plan: shown.plan }),
    ...(because.trim() !== '' && { because: because.trim() }),
  }
}

/** The command that applies what was shown, with the reason that was typed since. */
export function commandOf({ command }: Pick<ActionResult, 'command'>, because: string): string {
  const reason = because.trim()
  return command === '' || reason === ''
    ? command
    : `${command} ${shellWord(`--because=${reason}`)}`
}

/** One action instead of several of the same name on one target each. */
export function parkTogether(actions: readonly AllowedAction[]): AllowedAction | null {
  const [first] = actions
  if (!first || actions.length === 1) return first ?? null
  const targets = actions.flatMap(({ call }) => call.body['targets'] as string[])
  return {
    ...first,
    title: `Park ${plural(targets.length, 'target')}`,
    call: { ...first.call, body: { targets } },
  }
}
