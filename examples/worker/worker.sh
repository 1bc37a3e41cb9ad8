#!/usr/bin/env bash
# unstuck work --exec --targets --source shop --workers 4 --drain -- bash worker.sh https://shop.example
set -euo pipefail
trap '' TERM # Also in curl and jq: /heartbeat and /claim report a stop.

call() { # PATH [BODY]: prints the reply.
  curl -sS --fail-with-body -H "Authorization: Bearer $UNSTUCK_TOKEN" \
    -H 'Content-Type: application/json' --data-binary @- "$UNSTUCK_URL$1" <<<"${2:-"{}"}"
}

report() { # CALL [BODY]: about the target in progress.
  local reply
  if reply=$(call "/targets/$id/$1" "${2:-}"); then return; fi
  echo "$1: $reply" >&2
  [[ $reply == *'"LEASE_LOST"'* ]] || exit 1
  url='' # Another worker has the target.
}

if [[ $(call /planning | jq .planner) == true ]]; then
  call /targets "$(curl -sS --fail "$1/categories" | jq '{ targets: .items | map({ key: .name, url }) }')"
  call /targets/planned
fi
while true; do
  claimed=$(call /claim '{ "waitMs": 20000, "single": true }')
  if [[ $(jq '.ended or .stop' <<<"$claimed") == true ]]; then exit; fi
  IFS=$'\t' read -r id page url < <(jq -r '.targets[] | [.id, .page, .next // .url] | @tsv' <<<"$claimed") || continue
  while [[ $url ]]; do
    if [[ $(call /heartbeat | jq .stop) == true ]]; then report release; break; fi
    listing=$(curl -sS --fail "$url") || { report fail '{ "error": "the page cannot be read" }'; break; }
    url=$(jq -r '.next // ""' <<<"$listing")
    page=$((page + 1))
    report checkpoint "$(jq --argjson page "$page" \
      '{ $page, next, items: [.items[] | { url, data: { name } }] }' <<<"$listing")"
  done
done
