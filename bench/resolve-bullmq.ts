import { registerHooks } from 'node:module'

// `node --import ./bench/resolve-bullmq.ts …`: an example that imports `bullmq` gets the one in bench/node_modules.
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, specifier === 'bullmq' ? { ...context, parentURL: import.meta.url } : context),
})
