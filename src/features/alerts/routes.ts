import { defineRoute, type Route } from '../../contracts/route.ts'
import { presentAlerts } from '../../presenters/alerts.ts'
import { loadOverview } from '../../presenters/overview.ts'
import { alertView } from '../../presenters/view.ts'
import { ALERT_STORE } from './store/store.ts'

const RECENT_ALERTS = 50

export const ALERT_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute('GET /api/alerts', {
    summary: 'Alerts that are open, and those that were resolved last.',
    response: 'alerts',
    handle: async ({ context }) => {
      const alerts = await context.store.extend(ALERT_STORE)
      return {
        ...presentAlerts(await loadOverview(context)),
        recent: (await alerts.listAlerts({ open: false, limit: RECENT_ALERTS })).map(alertView),
      }
    },
  }),
]
