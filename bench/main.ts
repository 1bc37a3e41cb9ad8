// npm run bench -- [checkpoint|scale|doors|http|pm2|crawlee …] [--engines sqlite,postgres]
import { parseArgs } from 'node:util'
import { benchCheckpoint } from './checkpoint.ts'
import { benchCrawlee } from './crawlee.ts'
import { benchCheckAndSummary } from './check-and-summary.ts'
import { benchHttp } from './http.ts'
import { notInstalled } from './packages.ts'
import { benchLanguages } from './languages.ts'
import { benchPm2, PM2 } from './pm2.ts'
import { benchScale } from './scale.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { engines: { type: 'string', default: 'sqlite,postgres' } },
})
const engines = values.engines.split(',')
const benches: Record<string, (engines: readonly string[]) => Promise<void>> = {
  checkpoint: benchCheckpoint,
  scale: benchScale,
  doors: benchCheckAndSummary,
  http: benchHttp,
  pm2: benchPm2,
  crawlee: benchCrawlee,
  languages: benchLanguages,
}
for (const name of positionals.length > 0 ? positionals : Object.keys(benches)) {
  const bench = benches[name]
  if (!bench) {
    console.error(`There is no bench ${name}. There are: ${Object.keys(benches).join(', ')}.`)
    process.exit(2)
  }
  if (name === 'pm2' && !PM2) {
    console.error(`The bench pm2 is skipped: ${notInstalled('pm2')}`)
    // All benches were asked for, or this one.
    if (positionals.length > 0) process.exitCode = 1
    continue
  }
  await bench(engines)
}
