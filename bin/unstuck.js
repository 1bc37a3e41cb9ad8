#!/usr/bin/env node
import './check-runtime.js'
import { existsSync } from 'node:fs'

// A checkout runs its TypeScript as it is; the published package has only dist.
const source = new URL('../src/interfaces/cli/main.ts', import.meta.url)
const built = new URL('../dist/interfaces/cli/main.js', import.meta.url)
const { main } = await import(existsSync(source) ? source.href : built.href)
await main(process.argv.slice(2))
