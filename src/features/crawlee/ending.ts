/** What became of a try: `error` says why it was given up or put back. */
export type Ending =
  | { readonly as: 'handled' }
  | { readonly as: 'given up'; readonly error: string }
  | { readonly as: 'put back'; readonly error: string; readonly forefront: boolean }
