import { mistake } from './node-version.js'

if (mistake !== null) {
  console.error(mistake)
  process.exit(2)
}
