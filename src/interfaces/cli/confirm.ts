import { UsageError } from '../../core/model/errors.ts'
import type { Output } from '../../contracts/command.ts'

/** Whether a person agrees. `yes`: said so beforehand. Where nobody can be asked, `alternative` says what to add. */
export async function confirm(
  output: Output,
  question: string,
  { yes, alternative }: { yes: boolean; alternative: string },
): Promise<boolean> {
  if (yes) return true
  const answer = await output.ask(`${question} [y/N]`)
  if (answer === null) throw new UsageError(`${question} Nobody is there to ask: ${alternative}.`)
  return /^y(es)?$/i.test(answer)
}

/** For what cannot be undone: the words must be typed, or given beforehand. */
export async function confirmByTyping(
  output: Output,
  phrase: string,
  given: string | undefined,
): Promise<boolean> {
  if (given !== undefined && given !== phrase) {
    throw new UsageError(`--confirm must be ${JSON.stringify(phrase)}: nothing was deleted.`)
  }
  const typed = given ?? (await output.ask(`This cannot be undone. Type “${phrase}” to go on:`))
  if (typed === null) {
    throw new UsageError(
      `This cannot be undone, and nobody is there to ask: add --confirm ${JSON.stringify(phrase)}.`,
    )
  }
  return typed === phrase
}
