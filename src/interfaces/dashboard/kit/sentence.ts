/** A reason as it stands in a verdict, written as a sentence. */
export function sentence(reason: string): string {
  const begun = reason.charAt(0).toUpperCase() + reason.slice(1)
  return begun === '' || /[.!?]$/.test(begun) ? begun : `${begun}.`
}
