/** What became of a try: `error` says why it was given up or put back. */
export type RequestResult =
  | { readonly kind: 'handled' }
  | { readonly kind: 'given up'; readonly error: string }
  | { readonly kind: 'put back'; readonly error: string; readonly forefront: boolean }
