import { render } from 'preact'
import { App } from './app.tsx'
import { startLive } from './live.ts'
import { startRouter } from './router.ts'
import { loadSession } from './session.ts'
import { startTheme } from './theme.ts'

startTheme()
startRouter()
startLive()
void loadSession()
render(<App />, document.getElementById('app')!)
