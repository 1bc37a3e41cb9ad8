#!/usr/bin/env node
import './check-runtime.js'
import { existsSync } from 'node:fs'
import * as module from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A worker that died must be back at once, so code compiled by one start is used by the next: half the start-up time.
// The variable is for threads and worker processes.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'node-compile-cache')
module.enableCompileCache(process.env.NODE_COMPILE_CACHE)

// A checkout runs its TypeScript as it is; the published package has only dist.
const source = new URL('../src/surfaces/cli/main.ts', import.meta.url)
const built = new URL('../dist/surfaces/cli/main.js', import.meta.url)
const { main } = await import(existsSync(source) ? source.href : built.href)
await main(process.argv.slice(2))
