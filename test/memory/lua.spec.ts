import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MemoryClient } from '../../lib/redis/memory.client.js';
import { World } from '../helpers/world.js';

// Each text is run by a real Redis and by the store in memory, which must answer the same, errors included.
const SCRIPTS: Record<string, readonly string[]> = {
  'arithmetic and its texts': [
    'return { tostring(1e15), tostring(123456789012345), tostring(0.1), tostring(1/0), tostring(-1/0) }',
    'return { tostring(1e14), tostring(99999999999999), tostring(1e-5), tostring(3.14159265358979), tostring(2^53) }',
    'return { 5 % 3, -5 % 3, 5 % -3, tostring(5.5 % 2), tostring(-5.5 % 2), tostring(2 ^ 10), tostring(7 / 2) }',
    "return { 1 + '2', '3' * '4', tostring('0x10' + 0), tostring(' 5 ' + 1), tostring(-'2') }",
    'return tostring(-0.0)',
    'return { tostring(1234567890123455), tostring(0.000125), tostring(2^63), tostring(-1e100) }',
    "return 1 + 'a'",
    "return { tostring(2 ^ -1), tostring(-2 ^ 2), tostring(2 ^ 3 ^ 2), 1 .. 2, 1 .. '' .. 2.5, 10 - 3 - 2 }",
    'return { 1, 1.9, -1.9, 2.5, 1e3, true, false, nil, 4 }',
    'return { 1, { 2, { 3, "x" } }, {} }',
    'return 12345678901234567',
    'local now = 1700000000123 return { "(" .. now, now * 1024, string.format("%.0f", now * 1024), now / 1000 .. "" }',
  ],
  comparisons: [
    "return { 1 < 2 and 1 or 0, 'a' < 'b' and 1 or 0, 'Z' < 'a' and 1 or 0, '10' < '9' and 1 or 0, 1 == '1' and 1 or 0 }",
    "return { 'a' <= 'a' and 1 or 0, 2 >= 3 and 1 or 0, 1 ~= 1 and 1 or 0, (0/0) == (0/0) and 1 or 0, nil == false and 1 or 0 }",
    "return 1 < 'x'",
    'return {} < {}',
    'return nil > 1',
    'local t = {} return { t == t and 1 or 0, t == {} and 1 or 0, not nil and 1 or 0, not 0 and 1 or 0 }',
    "return { 1 and 2, nil or 3, false and 1 or 4, (1 and nil) or 5, nil and 1 or 'x' }",
  ],
  'tables and lengths': [
    'local t = { 1, 2, 3 } t[4] = 4 t[2] = nil return { #t, t[1], t[2] or 0, t[4] }',
    'local t = {} t[2] = 2 t[1] = 1 t[3] = 3 return { #t, unpack(t) }',
    "local t = { a = 1, ['b c'] = 2, 3, [10] = 4; 5 } return { t.a, t['b c'], t[1], t[10], t[2], #t }",
    'local t = { 1, 2, 3 } t[#t] = nil t[#t] = nil return #t',
    'local t = {} for i = 10, 1, -3 do t[#t + 1] = i end return t',
    'local t = {} for i = 1, 0 do t[1] = 1 end return #t',
    'local t = {} for k, v in pairs({ 5, 6, x = 7 }) do t[#t + 1] = tostring(k) .. v end return t',
    'local t = { 3, 1, 2 } table.sort(t) table.insert(t, 9) table.insert(t, 1, 0) return { table.concat(t, ","), table.remove(t), table.remove(t, 1), #t }',
    'local t = { 3, 1, 2 } table.sort(t, function(a, b) return a > b end) return t',
    'return table.concat({ 1, 2.5, "x" }, "-", 2, 3)',
    'return table.concat({ 1, {} })',
    'return { unpack({ 1, 2, 3 }, 2) }',
    'return { unpack({ 1, 2, 3 }, 2, 5), 7 }',
    'return { select("#", nil, nil), select(2, "a", "b", "c") }',
    'return { (select(2, "a", "b", "c")) }',
    'return { select(-1, "a", "b") }',
    'return { next({}) and 1 or 0, (next({ 5 })) }',
    'local t = {} t[nil] = 1',
    'local t = { 1, 2, nil, 4 } return t',
    'return { math.max(1, 5, 3), math.min(4, 2), math.floor(-1.5), math.ceil(-1.5), math.abs(-3), math.fmod(-5, 3) }',
    'return { math.max(), 1 }',
  ],
  'functions and scopes': [
    'local function f(n) if n <= 1 then return 1 end return n * f(n - 1) end return f(10)',
    'local fs = {} for i = 1, 3 do fs[i] = function() i = i + 1 return i end end return { fs[1](), fs[1](), fs[2](), fs[3]() }',
    'local x = 1 local function get() return x end local x = 2 return { get(), x }',
    'local function two() return 1, 2 end return { two(), two() }',
    'local function two() return 1, 2 end return { (two()), two(), (two()) }',
    'local function rest(...) local a, b = ... return select("#", ...), b, { ... } end return { rest(7, 8, 9) }',
    'local a, b, c = (function() return 1, 2 end)() return { a, b, c == nil and 1 or 0 }',
    'local a, b = 1, 2 a, b = b, a return { a, b }',
    'local t, i = { 1, 2 }, 1 i, t[i] = i + 1, 20 return { i, t[1], t[2] }',
    'local n = 0 while true do n = n + 1 if n > 5 then break end end return n',
    'local n = 0 repeat local done = n >= 3 n = n + 1 until done return n',
    'local n = 0 for i = 1, 3 do for j = 1, 3 do if j == 2 then break end n = n + 1 end end return n',
    'do return 5 end',
    'local t = { n = 0 } function t:add(by) self.n = self.n + by return self end return t:add(2):add(3).n',
    'local t = { u = {} } function t.u.f(x) return x * 2 end return t.u.f(4)',
    "return { ('abc'):upper(), ('x'):rep(3), #'abc' }",
    'if nil then return 1 elseif false then return 2 else return 3 end',
    'local function deep(n) if n == 0 then return 0 end local r = deep(n - 1) return r + 1 end return deep(150)',
    'local function f() return end return { f(), 1 }',
    'local a <const> = 1',
    'return [[long\ntext]] .. [==[ with ]] inside]==]',
    "return { 'a\\tb\\65\\'\\n', \"q\\\"\", #'\\0x' }",
    '--[[ a long\ncomment ]] return 1 -- and a short one',
  ],
  'globals, which are not for scripts': ['return nothing', 'some = 1 return some', 'local x = print return 1'],
  errors: [
    "error('told')",
    "error('told', 0)",
    'error({ err = "MYCODE told" })',
    "return { pcall(function() error('told') end) }",
    "return { pcall(error, 'told') }",
    'local ok, e = pcall(function() error({ 5 }) end) return { ok and 1 or 0, e[1] }',
    'assert(false)',
    "assert(nil, 'so there')",
    'return { assert(1, 2) }',
    'local x = nil return x.y',
    'local x = {} return x.y.z',
    'local x = {} x.y.z = 1',
    'local x = 5 x()',
    'local t = {} t.f()',
    "return 'a' .. {}",
    "return 'a' .. nil",
    'return #5',
    'return -{}',
    '\n\nlocal x\nreturn x + 1',
    'return string.rep()',
    'return ("x"):nothing()',
    'return tostring()',
    'return ipairs(nil)',
    'return redis.error_reply("MYCODE with words")',
    'return redis.error_reply("alone")',
    'return redis.status_reply("FINE")',
    'return { ok = "FINE" }',
    'return { err = "MYCODE words" }',
    'return { 1, redis.error_reply("INSIDE it") }',
  ],
  'scripts that do not compile': [
    'return (',
    'local = 1',
    'for i = 1 do end',
    'x = = 1',
    "return 'open",
    'if x then',
    'return 1 2',
    '@',
  ],
  numbers: [
    "return { tonumber('0x1F'), tonumber(' 12 '), tonumber('1e2'), tonumber('5.') , tonumber('.5') * 10 }",
    "return { tonumber('') == nil and 1 or 0, tonumber('1x') == nil and 1 or 0, tonumber('x') == nil and 1 or 0, tonumber('-') == nil and 1 or 0 }",
    "return { tonumber('ff', 16), tonumber('777', 8), tonumber('0000000001f', 16), tonumber('zz', 36), tonumber('12', 2) == nil and 1 or 0 }",
    "return { tostring(tonumber('inf')), tostring(tonumber('-inf')), tonumber('nan') ~= tonumber('nan') and 1 or 0 }",
    "return { tonumber(nil) == nil and 1 or 0, tonumber(true) == nil and 1 or 0, type(tonumber('1')) }",
    'return { type(nil), type(1), type(""), type({}), type(type), type(true) }',
    'return { tostring(nil), tostring(true), tostring("x") }',
  ],
  'string.format': [
    "return { string.format('%d %5d %-5d| %05d %+d', 42, 42, 42, 42, 42), string.format('%d', 3.9), string.format('%d', -3.9) }",
    "return { string.format('%x %X %011x %#x', 255, 255, 1700000000123, 255), string.format('%o', 8), string.format('%c%c', 72, 105) }",
    "return { string.format('%.0f', 2^53), string.format('%.0f', 0.5), string.format('%.0f', 1.5), string.format('%.3f', 2/3), string.format('%8.2f|', 3.14159) }",
    "return { string.format('%g %g %g', 1e20, 0.1, 100000), string.format('%.3g', 1234567), string.format('%e', 12345.678) }",
    "return { string.format('%s %s %10s|%-10s|%.2s', 'a', 12, 'right', 'left', 'cut'), string.format('%%'), string.format('%q', 'a\"b\\n') }",
    "return string.format('%d', 'x')",
    "return string.format('%s')",
    "return { string.format('%.0f %.0f %.0f', 1e15, 123456789012345678, -1), string.format('%5s|%5.1s|', 'ab', 'ab') }",
    "return { string.format('%.14g', 0.1), string.format('%.17g', 0.1), string.format('%.0f', 1e22), string.format('%i', 7) }",
  ],
  'string.sub and its like': [
    "return { string.sub('hello', 2, 4), string.sub('hello', -3), string.sub('hello', 2), string.sub('hello', 0), string.sub('hello', 4, 2) }",
    "return { string.sub('hello', -100, 2), string.sub('hello', 3, 100), string.sub('', 1, 1), string.sub('hello', -2, -1), string.sub('hello', 1, -3) }",
    "return { string.byte('A'), string.byte('abc', 2), string.byte('abc', -1), string.byte('abc', 1, 3) }",
    "return { string.len('äöü'), #'日本', string.sub('äöü', 1, 2), string.upper('aä'), string.lower('AÄ'), string.reverse('abc') }",
    "return { string.rep('ab', 3), string.rep('x', 0), string.rep('x', -1), string.char(104, 105), #string.char() }",
  ],
  patterns: [
    "return { string.find('hello world', 'o w'), string.find('hello', 'l'), string.find('hello', 'xyz') == nil and 1 or 0 }",
    "return { string.find('a.b', '.', 1, true), string.find('a.b', '%.'), string.find('abc', 'b', -1) == nil and 1 or 0, string.find('abc', '', 10) == nil and 1 or 0 }",
    "return { string.find('abc', ''), string.find('abc', 'b', -2), string.find('key = value', '(%w+)%s*=%s*(%w+)') }",
    "return { string.match('name 1700000000000', '^(.+) (%d+)$') }",
    "return { string.match('a b c 12', '^(.+) (%d+)$'), string.match('1 2 3 4', '^(%d+) (%d+) (%d+) (%d+)$') }",
    "return { string.match('ka500 i5 - -', '^..(%d+) (%S+) (%S+) (%S+)$') }",
    "return { string.match('reason\\n{json}', '^([^\\n]*)'), string.match('chan#12', '^(.*)#%d+$'), string.match('x', '^(.*)#%d+$') or 'none' }",
    "return { string.match('  trim  ', '^%s*(.-)%s*$'), string.match('abc', '()b()'), string.match('x=1', '=') }",
    "return { string.match('f(a(b)c)d', '%b()'), string.match('THE (quick) fox', '%f[%a]%a+', 5), string.match('aa bb', '(%a)%1', 2) }",
    "return { string.match('2024-01-31', '(%d%d%d%d)-(%d%d)-(%d%d)'), string.match('[x]', '[%]%[]'), string.match('a-b', '[a%-]+'), string.match('^x', '[x^]+') }",
    "return { string.match('abc', '[^b]+'), string.match('a]c', '[]]'), string.match('hello', 'l-o'), string.match('hello', 'l*o'), string.match('hellooo', 'o+') }",
    "return { string.match('ab', 'a?b'), string.match('b', 'a?b'), string.match('x$', 'x$') or 'none', string.match('x$', 'x%$') , string.match('a\\0b', '%z') and 1 or 0 }",
    "local t = {} for word in string.gmatch('one two  three', '%a+') do t[#t + 1] = word end return t",
    "local t = {} for k, v in string.gmatch('a=1, b=2', '(%w+)=(%w+)') do t[#t + 1] = k .. v end return t",
    "local t = {} for s in string.gmatch('a\\nb\\nc', '[^\\n]+') do t[#t + 1] = s end return t",
    "local n = 0 for _ in string.gmatch('abc', '') do n = n + 1 end return n",
    "return { string.gsub('hello', 'l', 'L'), string.gsub('hello', 'l', 'L', 1), string.gsub('abc', '%w', '%0%0'), string.gsub('abc', '', '-') }",
    "return { string.gsub('hello world', '(%w+)', '<%1>'), string.gsub('$name is', '%$(%w+)', { name = 'x' }), string.gsub('abc', 'b', function(c) return nil end) }",
    "return { string.gsub('abc', '^a', 'x'), string.gsub('aaa', '^a', 'x'), string.gsub('abc', '(a)(b)', '%2%1') }",
    "return string.match('x', '(')",
    "return string.match('x', '[x')",
    "return string.match('x', '%')",
    "return string.gsub('x', 'x', '%2')",
  ],
  'replies of commands': [
    "return { type(redis.call('GET', KEYS[1])), type(redis.call('HMGET', KEYS[1], 'a')[1]), redis.call('ZCARD', KEYS[1]) }",
    "redis.call('SET', KEYS[1], 'x') return redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 'x')",
    "return redis.call('SET', KEYS[1], 'x').ok",
    "redis.call('ZADD', KEYS[1], 0.1, 'a', 1e15, 'b', 1700000000000.5, 'c', '(1', 'd')",
    "redis.call('DEL', KEYS[1]) redis.call('ZADD', KEYS[1], 0.1, 'a', 1e15, 'b', 1700000000000.5, 'c', 1e17, 'd', '-inf', 'e', 'inf', 'f') return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'n', 0.1 + 0.2, 'm', 1e15, 'i', 12345678901234567) return redis.call('HMGET', KEYS[1], 'n', 'm', 'i')",
    "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], 'text') return redis.call('ZCARD', KEYS[1])",
    "return redis.pcall('ZCARD', KEYS[1]).err",
    "local ok, e = pcall(redis.call, 'ZCARD', KEYS[1]) return { ok and 1 or 0, e.err }",
    "redis.call('ZCARD', {})",
    "redis.call('ZCARD', nil)",
    'redis.call()',
    "return { #ARGV, ARGV[1], #KEYS, ARGV[99] == nil and 1 or 0, type(redis.call('TIME')[1]) }",
    "return { #ARGV[1], string.sub(ARGV[1], 1, 2), ARGV[1] .. '!' }",
  ],
};

describe('Lua in memory', () => {
  let world: World;
  const memory = new MemoryClient('memory://');
  const evaluate = memory as unknown as { eval(script: string, keys: number, ...args: string[]): Promise<unknown> };
  beforeAll(async () => {
    world = await World.open();
    await memory.connect();
  });
  afterAll(async () => {
    memory.disconnect();
    await world.close();
  });

  const outcome = (run: Promise<unknown>) =>
    run.then(
      (reply) => ({ reply }),
      // Redis adds where in the script it happened, and its hash.
      (error: Error) => ({ error: error.message.replace(/ script: .*$/s, '') }),
    );

  describe.each(Object.entries(SCRIPTS))('%s', (_, scripts) => {
    it.each(scripts)('%s', async (script) => {
      const args = [1, `${world.prefix}:lua`, 'ä argument'] as const;
      expect(await outcome(evaluate.eval(script, ...args))).toEqual(await outcome(world.redis.eval(script, ...args)));
    });
  });
});
