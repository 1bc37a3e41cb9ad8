# unstuck work --exec --targets --source shop --workers 4 --drain -- ruby worker.rb https://shop.example
require 'json'
require 'net/http'

HEADERS = { 'Authorization' => "Bearer #{ENV['UNSTUCK_TOKEN']}", 'Content-Type' => 'application/json' }.freeze
LeaseLost = Class.new(StandardError)

def call(path, **body)
  response = Net::HTTP.post(URI(ENV['UNSTUCK_URL'] + path), body.to_json, HEADERS)
  reply = JSON.parse(response.body, symbolize_names: true)
  raise LeaseLost, reply[:error][:message] if reply.dig(:error, :code) == 'LEASE_LOST'
  response.is_a?(Net::HTTPOK) ? reply : abort("#{path}: #{reply[:error][:message]}")
end

def get(url) = JSON.parse(Net::HTTP.get_response(URI(url)).tap(&:value).body, symbolize_names: true)

def save_pages(path, page, url)
  while url
    return call("#{path}/release") if $stopping
    listing = begin
      get(url)
    rescue StandardError => e
      return call("#{path}/fail", error: e.message)
    end
    items = listing[:items].map { |item| { url: item[:url], data: { name: item[:name] } } }
    call("#{path}/checkpoint", page: page += 1, items:, next: url = listing[:next])
  end
rescue LeaseLost => e
  warn e.message # Another worker has the target.
end

trap('TERM') { $stopping = true } # The page in progress is finished first.
if call('/planning')[:planner]
  call('/targets', targets: get("#{ARGV[0]}/categories")[:items].map { |one| { key: one[:name], url: one[:url] } })
  call('/targets/planned')
end
until (claimed = call('/claim', waitMs: 20_000, single: true)).values_at(:ended, :stop).any?
  claimed[:targets].each { |one| save_pages("/targets/#{one[:id]}", one[:page], one[:next] || one[:url]) }
end
