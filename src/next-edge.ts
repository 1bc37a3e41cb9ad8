import type * as Node from './next.ts'

// What `unstuck/next` is in what Next.js builds for the edge (the condition `edge-light` in package.json), be it an edge route,
// a middleware, or instrumentation.ts beside one of them: there is no Node there, so nothing is started, and nothing imported.

export const register: typeof Node.register = () => {}

export const unstuckRoutes: typeof Node.unstuckRoutes = () => refuse()

export const recoveryRoutes: typeof Node.recoveryRoutes = () => refuse()

function refuse(): never {
  throw new Error("Unstuck needs Node's runtime: leave out `export const runtime = 'edge'`.")
}
