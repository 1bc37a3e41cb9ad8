// The first import of every published entry point: it throws before any other module is evaluated.
import { mistake } from './node-version.js'

if (mistake !== null) throw new Error(mistake)
