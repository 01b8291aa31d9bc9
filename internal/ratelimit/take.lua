-- Takes a token from the bucket KEYS[1] if it has one: it holds ARGV[1], and ARGV[2] more
-- flow into it a second. Answers whether it had one, and what it holds now. It is kept
-- until it is full, so one that is not there is full.
local burst, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1e6 + clock[2] -- in microseconds, whole numbers that a double holds
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1] or burst), tonumber(bucket[2] or now)

-- A clock that steps back must not mint tokens.
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1e6)
at = math.max(at, now)

-- As in memory, a token that is due within a nanosecond is there.
local allowed = tokens + rate / 1e9 >= 1
if allowed then tokens = tokens - 1 end

-- Written after a refusal too: a Redis that cannot be written to must always fail.
-- A millisecond more, as expiry rounds the present down; and no time without end.
local full = math.min(1e15, math.ceil((burst - tokens) / rate * 1000) + 1)
tokens = string.format('%.17g', tokens)
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', string.format('%.0f', at))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', full))
return {allowed and 1 or 0, tokens}
