import type { RunHandle } from '../../core/worker/run-handle.ts'

/** How a command reaches its run: implemented by the HTTP API. */
export interface Endpoint {
  openSession(handle: RunHandle, hooks: RunHooks): EndpointSession
}

export type RunEnd = 'finish' | { readonly error: string; readonly retry: boolean }

/** What the owner of a run wants to hear and knows. */
export type RunHooks = {
  /** Any call with the right token: the command is there. */
  onCall(): void
  /** Whether the command is to stop. */
  isStopping(): boolean
  /** The command has ended its run, and the store knows. */
  onEnd(end: RunEnd): void
}

/** What a command is told of the API of its run. */
export type EndpointSession = {
  /** The base address, UNSTUCK_URL. */
  readonly url: string
  /** For this run alone, UNSTUCK_TOKEN. */
  readonly token: string
  /** Where to connect to instead of the address's host. */
  readonly socket?: string
  /** No call is answered from now on. */
  close(): void
}
