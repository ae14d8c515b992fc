-- Wireshark dissector for Weft's protocols.
--
--   wireshark -X lua_script:weft.lua capture.pcapng
--   tshark    -X lua_script:weft.lua -r capture.pcapng -O weft.dta
--
-- or put this file into Wireshark's personal plugins folder. It dissects
--   weft.dta      reports, UDP 40040 (Weft v1, v2 and the prototype's two layouts)
--   weft.ack      acknowledgements to reporters, from UDP 40040 or to 40044
--   weft.label    INT-label blocks, IP protocol 253
--   weft.poll     polling packets, EtherType 0x6888
--   weft.int      INT telemetry reports v2.0, UDP 32766
--   weft.flowset  flowset chunks inside Append reports
--   weft.epoch    epoch telemetry inside Append reports
--   weft.mirror   mirrored packets inside Append reports
--   weft.mellanox SONiC's padded mirrors on Mellanox, GRE type 0x8949
-- Wireshark itself dissects RoCEv2, PFC and ERSPAN I to III. The layouts are drawn in
-- docs/formats; a test compares every field here with what Weft encoded.

-- declare makes a protocol and its fields: {type, short name, label, …}. It
-- returns both, the fields by short name.
local function declare(name, title, list)
  local proto, byName, all = Proto(name, title), {}, {}
  for _, d in ipairs(list) do
    local f = ProtoField[d[1]](name .. "." .. d[2], d[3], table.unpack(d, 4))
    byName[d[2]] = f
    all[#all + 1] = f
  end
  proto.fields = all
  return proto, byName
end

-- cursor adds the fields of a range one after the other.
local function cursor(tree, f, range)
  local at = 0
  local c = {}
  function c.add(name, size)
    local item = tree:add(f[name], range(at, size))
    at = at + size
    return item
  end
  function c.take(size)
    local r = range(at, size)
    at = at + size
    return r
  end
  function c.left() return range:len() - at end
  return c
end

-- A canonical flow key is 13 bytes for IPv4 and 37 for IPv6.
local keyFields = {
  { "ipv4", "src", "Source" }, { "ipv6", "src6", "Source" },
  { "ipv4", "dst", "Destination" }, { "ipv6", "dst6", "Destination" },
  { "uint16", "srcport", "Source port" }, { "uint16", "dstport", "Destination port" },
  { "uint8", "proto", "Protocol" },
}

local function addKey(tree, f, range)
  local v6 = range:len() == 37
  if not v6 and range:len() ~= 13 then return end
  local c = cursor(tree, f, range)
  c.add(v6 and "src6" or "src", v6 and 16 or 4)
  c.add(v6 and "dst6" or "dst", v6 and 16 or 4)
  c.add("srcport", 2)
  c.add("dstport", 2)
  c.add("proto", 1)
end

local function join(...)
  local all = {}
  for _, list in ipairs({ ... }) do
    for _, d in ipairs(list) do all[#all + 1] = d end
  end
  return all
end

local function noExtra(tree, range, at)
  if range:len() > at then tree:add_expert_info(PI_MALFORMED, PI_ERROR, "bytes after the end") end
end

---------------------------------------------------------------------- flowset

local sections = { [1] = "filter", [2] = "cells" }
local flowset, fs = declare("weft.flowset", "Weft flowset chunk", {
  { "uint16", "magic", "Magic", base.HEX }, { "uint8", "version", "Version" },
  { "uint8", "section", "Section", base.DEC, sections }, { "uint32", "switch", "Switch" },
  { "uint16", "scope", "Scope (port; 0: switch)" }, { "uint8", "filter_hashes", "Filter hashes" },
  { "uint8", "tables", "Sub-tables" }, { "uint8", "key_width", "Key width" },
  { "uint8", "flows_width", "Flow count width" }, { "uint8", "packets_width", "Packet count width" },
  { "uint8", "bytes_width", "Byte count width" }, { "uint8", "ports_width", "Port width" },
  { "uint24", "probes", "Packets of probes" }, { "uint32", "slot", "Slot" }, { "uint64", "seed", "Seed", base.HEX },
  { "int64", "start", "Slot start (ns)" }, { "int64", "length", "Slot length (ns)" },
  { "uint32", "filter_bits", "Filter bits" }, { "uint32", "cells", "Cells per sub-table" },
  { "uint64", "packets", "Packets counted" }, { "uint64", "bytes", "Bytes counted" },
  { "uint32", "flows", "Flows inserted" }, { "uint32", "unkeyed", "Unkeyed packets" },
  { "uint32", "missed", "Missed packets" }, { "uint32", "first", "First unit" }, { "uint32", "units", "Units" },
  { "bytes", "filter", "Filter" }, { "bytes", "cell", "Cell" }, { "uint32", "crc", "CRC-32C", base.HEX },
  { "bytes", "cell.key", "Key XOR" }, { "uint64", "cell.flows", "Flows" }, { "uint64", "cell.packets", "Packets" },
  { "uint64", "cell.bytes", "Bytes" }, { "uint16", "cell.in", "Ingress port XOR" }, { "uint16", "cell.out", "Egress port XOR" },
})

function flowset.dissector(buf, _, root)
  local tree = root:add(flowset, buf())
  local c = cursor(tree, fs, buf())
  c.add("magic", 2)
  c.add("version", 1)
  local section = buf(3, 1):uint()
  c.add("section", 1)
  c.add("switch", 4)
  c.add("scope", 2)
  c.add("filter_hashes", 1)
  c.add("tables", 1)
  local widths = { key = buf(12, 1):uint(), flows = buf(13, 1):uint(), packets = buf(14, 1):uint(), bytes = buf(15, 1):uint(), ports = buf(16, 1):uint() }
  for _, n in ipairs({ "key_width", "flows_width", "packets_width", "bytes_width", "ports_width" }) do c.add(n, 1) end
  c.add("probes", 3)
  c.add("slot", 4)
  for _, n in ipairs({ "seed", "start", "length" }) do c.add(n, 8) end
  for _, n in ipairs({ "filter_bits", "cells" }) do c.add(n, 4) end
  for _, n in ipairs({ "packets", "bytes" }) do c.add(n, 8) end
  for _, n in ipairs({ "flows", "unkeyed", "missed", "first" }) do c.add(n, 4) end
  local units = buf(88, 4):uint()
  c.add("units", 4)
  if section == 1 then
    c.add("filter", units)
  else
    local size = widths.key + widths.flows + widths.packets + widths.bytes + 2 * widths.ports
    for _ = 1, units do
      local range = c.take(size)
      local cell = cursor(tree:add(fs["cell"], range), fs, range)
      cell.add("cell.key", widths.key)
      cell.add("cell.flows", widths.flows)
      cell.add("cell.packets", widths.packets)
      if widths.bytes > 0 then cell.add("cell.bytes", widths.bytes) end
      if widths.ports > 0 then
        cell.add("cell.in", widths.ports)
        cell.add("cell.out", widths.ports)
      end
    end
  end
  c.add("crc", 4)
  noExtra(tree, buf(), buf:len() - c.left())
end

------------------------------------------------------------------------ epoch

local kinds = { [1] = "port", [2] = "port epoch", [3] = "flow", [4] = "flow", [5] = "meter",
  [6] = "pause", [7] = "flow backlog", [8] = "flow backlog", [9] = "port pair backlog",
  [10] = "congestion episode", [11] = "poll reference", [12] = "pause intervals",
  [13] = "congestion intervals", [14] = "settings", [15] = "backlog history" }
local epoch, ep = declare("weft.epoch", "Weft epoch telemetry", join({
  { "uint16", "magic", "Magic", base.HEX }, { "uint8", "version", "Version" }, { "uint8", "flags", "Flags", base.HEX },
  { "uint32", "switch", "Switch" }, { "uint32", "host", "Event host" }, { "uint32", "event", "Event number" },
  { "uint16", "index", "Chunk" }, { "uint16", "total", "Chunks" }, { "int64", "snapshot", "Snapshot (ns)" },
  { "int64", "length", "Epoch length (ns)" }, { "uint32", "dropped", "Records dropped" },
  { "uint32", "size", "Bytes of records" }, { "uint32", "crc", "CRC-32C", base.HEX },
  { "uint8", "kind", "Record", base.DEC, kinds }, { "uint8", "record_size", "Record length" },
  { "uint32", "epoch", "Epoch" }, { "uint16", "port", "Port" }, { "uint16", "in", "Ingress port" }, { "uint16", "out", "Egress port" },
  { "uint8", "priority", "Priority" }, { "bool", "paused_now", "Paused now" }, { "int64", "remaining", "Pause remaining (ns)" },
  { "uint64", "pause_frames_total", "Pause frames since start" }, { "uint64", "queued", "Queued bytes" },
  { "uint64", "sent", "Packets sent since start" }, { "uint8", "reserved", "Reserved" }, { "bool", "evicted", "Evicted" },
  { "uint32", "packets", "Packets" }, { "uint32", "paused", "Paused packets" }, { "uint32", "pause_frames", "Pause frames" },
  { "uint64", "bytes", "Bytes" }, { "uint64", "depth", "Queue depth, sum (packets)" },
  { "uint64", "paused_depth", "Queue depth while paused, sum (packets)" }, { "bytes", "unknown", "Record of unknown kind" },
  { "int64", "last_start", "Last pause started (ns)" }, { "int64", "last_end", "Last pause ended (ns)" },
  { "int64", "burst_start", "Pause burst started (ns)" }, { "uint64", "bytes_at_burst_start", "Queued bytes at burst start" },
  { "uint64", "pause_count", "Pauses since start" }, { "int64", "paused_time", "Time paused since start (ns)" },
  { "uint32", "first_enqueue", "First enqueue, in the epoch (ns)" }, { "uint32", "last_enqueue", "Last enqueue, in the epoch (ns)" },
  { "int64", "episode_first", "Episode started (ns)" }, { "int64", "episode_last", "Episode last seen (ns)" },
  { "uint64", "episode_max", "Largest queue in the episode (bytes)" }, { "int64", "poll_received", "Poll received (ns)" },
  { "uint8", "interval_flags", "Interval flags", base.HEX }, { "bool", "interval_open", "Last interval open", 8, nil, 0x01 },
  { "bool", "interval_earlier", "Summary of earlier ones", 8, nil, 0x02 }, { "bytes", "interval", "Interval" },
  { "uint32", "interval_start", "Started before the snapshot (ns)" }, { "uint32", "interval_end", "Ended before the snapshot (ns)" },
  { "uint32", "interval_bytes", "Queued at its start, or largest queue (bytes)" },
  { "bool", "history_cut", "Points before the first are lost" }, { "bytes", "backlog_point", "Backlog" },
  { "uint32", "backlog_at", "Before the snapshot (ns)" }, { "uint32", "backlog_bytes", "Backlog (bytes)" },
  { "uint32", "earlier_count", "Earlier intervals" }, { "uint32", "earlier_start", "Earlier ones started before the snapshot (ns)" },
  { "uint32", "earlier_end", "Earlier ones ended before the snapshot (ns)" }, { "uint32", "earlier_total", "Earlier ones, sum (ns)" },
  { "uint32", "earlier_bytes", "Earlier ones, bytes" },
  { "uint32", "congestion_threshold", "Congestion threshold (ns)" }, { "uint32", "burst_gap", "Longest gap in a pause burst (ns)" },
  { "uint32", "interval_memory", "Intervals reported for (ns)" }, { "uint32", "mtu", "MTU" }, { "uint32", "xoff", "XOFF (bytes)" },
  { "uint32", "xon", "XON (bytes)" }, { "uint8", "pause_intervals", "Pause intervals kept" },
  { "uint8", "congestion_intervals", "Congestion intervals kept" },
}, keyFields))

local function epochRecord(tree, range)
  local kind = range(0, 1):uint()
  local sub = tree:add(epoch, range, "Record: " .. (kinds[kind] or "unknown"))
  local c = cursor(sub, ep, range)
  c.add("kind", 1)
  c.add("record_size", 1)
  if kind == 1 then
    c.add("port", 2)
    c.add("priority", 1)
    c.add("paused_now", 1)
    for _, n in ipairs({ "remaining", "pause_frames_total", "queued", "sent" }) do c.add(n, 8) end
  elseif kind == 2 then
    c.add("epoch", 4)
    c.add("port", 2)
    c.add("priority", 1)
    c.add("reserved", 1)
    for _, n in ipairs({ "packets", "paused", "pause_frames" }) do c.add(n, 4) end
    for _, n in ipairs({ "depth", "paused_depth" }) do c.add(n, 8) end
  elseif kind == 3 or kind == 4 then
    c.add("epoch", 4)
    c.add("out", 2)
    c.add("in", 2)
    c.add("priority", 1)
    c.add("evicted", 1)
    for _, n in ipairs({ "packets", "paused" }) do c.add(n, 4) end
    for _, n in ipairs({ "bytes", "depth", "paused_depth" }) do c.add(n, 8) end
    for _, n in ipairs({ "first_enqueue", "last_enqueue" }) do c.add(n, 4) end
    addKey(sub, ep, c.take(c.left()))
  elseif kind == 5 then
    c.add("epoch", 4)
    c.add("in", 2)
    c.add("out", 2)
    c.add("priority", 1)
    c.add("reserved", 1)
    c.add("packets", 4)
    c.add("bytes", 8)
  elseif kind == 6 then
    c.add("port", 2)
    c.add("priority", 1)
    c.add("reserved", 1)
    for _, n in ipairs({ "last_start", "last_end", "burst_start", "bytes_at_burst_start", "pause_count", "paused_time" }) do c.add(n, 8) end
  elseif kind >= 7 and kind <= 9 then
    c.add("in", 2)
    c.add("out", 2)
    c.add("priority", 1)
    c.add("reserved", 1)
    c.add("packets", 4)
    c.add("bytes", 8)
    if kind < 9 then addKey(sub, ep, c.take(c.left())) end
  elseif kind == 10 then
    c.add("port", 2)
    c.add("priority", 1)
    c.add("reserved", 1)
    for _, n in ipairs({ "episode_first", "episode_last", "episode_max" }) do c.add(n, 8) end
  elseif kind == 11 then
    c.add("poll_received", 8)
  elseif kind == 12 or kind == 13 then
    c.add("port", 2)
    c.add("priority", 1)
    local flags = c.take(1)
    for _, n in ipairs({ "interval_flags", "interval_open", "interval_earlier" }) do sub:add(ep[n], flags) end
    if flags:bitfield(6, 1) == 1 then
      for _, n in ipairs({ "earlier_count", "earlier_start", "earlier_end", "earlier_total", "earlier_bytes" }) do c.add(n, 4) end
    end
    while c.left() > 0 do
      local one = c.take(12)
      local i = cursor(sub:add(ep["interval"], one), ep, one)
      for _, n in ipairs({ "interval_start", "interval_end", "interval_bytes" }) do i.add(n, 4) end
    end
  elseif kind == 14 then
    for _, n in ipairs({ "congestion_threshold", "burst_gap", "interval_memory", "mtu", "xoff", "xon" }) do c.add(n, 4) end
    for _, n in ipairs({ "pause_intervals", "congestion_intervals" }) do c.add(n, 1) end
  elseif kind == 15 then
    c.add("in", 2)
    c.add("out", 2)
    c.add("priority", 1)
    c.add("history_cut", 1)
    while c.left() > 0 do
      local one = c.take(8)
      local i = cursor(sub:add(ep["backlog_point"], one), ep, one)
      for _, n in ipairs({ "backlog_at", "backlog_bytes" }) do i.add(n, 4) end
    end
  else
    c.add("unknown", c.left())
  end
end

function epoch.dissector(buf, _, root)
  local tree = root:add(epoch, buf())
  local c = cursor(tree, ep, buf())
  c.add("magic", 2)
  c.add("version", 1)
  c.add("flags", 1)
  for _, n in ipairs({ "switch", "host", "event" }) do c.add(n, 4) end
  for _, n in ipairs({ "index", "total" }) do c.add(n, 2) end
  for _, n in ipairs({ "snapshot", "length" }) do c.add(n, 8) end
  c.add("dropped", 4)
  local size = buf(40, 4):uint()
  c.add("size", 4)
  local records, at = c.take(size), 0
  while at < size do
    local n = records(at + 1, 1):uint()
    if n < 2 then break end
    epochRecord(tree, records(at, n))
    at = at + n
  end
  c.add("crc", 4)
  noExtra(tree, buf(), buf:len() - c.left())
end

----------------------------------------------------------------------- mirror

local mirror, mi = declare("weft.mirror", "Weft mirrored packet", {
  { "uint16", "magic", "Magic", base.HEX }, { "uint8", "version", "Version" }, { "uint8", "reasons", "Reasons", base.HEX },
  { "bool", "flag", "TCP SYN, FIN or RST", 8, nil, 0x01 }, { "bool", "sample", "Sampled", 8, nil, 0x02 },
  { "bool", "debug", "Debug mark", 8, nil, 0x04 }, { "bool", "protocol", "Control protocol", 8, nil, 0x08 },
  { "bool", "rule", "Rule", 8, nil, 0x10 }, { "uint32", "switch", "Switch" }, { "uint16", "in", "Ingress port" },
  { "uint16", "out", "Egress port" }, { "int64", "time", "Time (ns)" }, { "uint16", "length", "Frame length" },
  { "uint16", "captured", "Captured" },
})

function mirror.dissector(buf, pinfo, root)
  local tree = root:add(mirror, buf())
  local c = cursor(tree, mi, buf())
  c.add("magic", 2)
  c.add("version", 1)
  for _, n in ipairs({ "flag", "sample", "debug", "protocol", "rule" }) do tree:add(mi[n], buf(3, 1)) end
  c.add("reasons", 1)
  c.add("switch", 4)
  for _, n in ipairs({ "in", "out" }) do c.add(n, 2) end
  c.add("time", 8)
  for _, n in ipairs({ "length", "captured" }) do c.add(n, 2) end
  local captured = buf(22, 2):uint()
  if captured > 0 then Dissector.get("eth_withoutfcs"):call(buf(24, captured):tvb(), pinfo, tree) end
end

-------------------------------------------------------------------------- ack

local verdicts = { [0] = "stored", [1] = "gap", [2] = "rate-limited", [3] = "malformed", [4] = "unserved" }
local ack, ak = declare("weft.ack", "DTA acknowledgement", {
  { "uint8", "magic", "Magic and version", base.HEX }, { "uint8", "verdict", "Verdict", base.DEC, verdicts },
  { "uint16", "reserved", "Reserved" }, { "uint32", "reporter", "Reporter" }, { "uint32", "first", "First sequence" },
  { "uint32", "count", "Reports" }, { "uint8", "proto.seq", "Sequence" }, { "bool", "proto.nack", "NACK", 8, nil, 0x80 },
  { "uint8", "key_id", "Key id" }, { "uint64", "start", "Start of the sequence in ns" }, { "uint64", "sent", "Send time of the datagram in ns" },
  { "bytes", "mac", "MAC" },
})

function ack.dissector(buf, pinfo, root)
  pinfo.cols.protocol = "DTA-ACK"
  local tree = root:add(ack, buf())
  if buf:len() == 2 then
    tree:add(ak["proto.seq"], buf(0, 1))
    tree:add(ak["proto.nack"], buf(1, 1))
    return 2
  end
  -- Version 2: the datagram that is answered comes first, a MAC last.
  local at, last = 0, buf:len()
  if buf(0, 1):uint() == 0xa2 then
    local c = cursor(tree, ak, buf(0, 24))
    c.add("magic", 1)
    c.add("key_id", 1)
    c.add("reserved", 2)
    c.add("reporter", 4)
    c.add("start", 8)
    c.add("sent", 8)
    at, last = 24, last - 16
    tree:add(ak["mac"], buf(last, 16))
  end
  while at < last do
    local c = cursor(tree, ak, buf(at, 16))
    c.add("magic", 1)
    c.add("verdict", 1)
    c.add("reserved", 2)
    for _, n in ipairs({ "reporter", "first", "count" }) do c.add(n, 4) end
    at = at + 16
  end
  return buf:len()
end

-------------------------------------------------------------------------- dta

local primitives = { [1] = "key-write", [2] = "append", [3] = "key-increment", [4] = "postcarding" }
local dta, d = declare("weft.dta", "Direct Telemetry Access", join({
  { "uint8", "magic", "Magic and version", base.HEX }, { "uint8", "flags", "Flags", base.HEX }, { "uint16", "count", "Reports" },
  { "uint32", "reporter", "Reporter" }, { "uint32", "seq", "Sequence of the first report" },
  { "uint8", "key_id", "Key id" }, { "uint64", "start", "Start of the sequence in ns" }, { "uint64", "sent", "Send time in ns" },
  { "bytes", "mac", "MAC" },
  { "uint8", "primitive", "Primitive", base.DEC, primitives, 0xf0 },
  { "bool", "immediate", "Immediate", 8, nil, 0x08 }, { "bool", "retransmit", "Retransmittable", 8, nil, 0x04 },
  { "uint8", "copies", "Redundancy less one", base.DEC, nil, 0xc0 }, { "uint8", "key_len", "Key length", base.DEC, nil, 0x3f },
  { "uint16", "data_len", "Data length" }, { "uint32", "list", "List" }, { "uint64", "delta", "Delta" },
  { "uint8", "hop", "Hop" }, { "uint8", "path", "Path length" }, { "bytes", "key", "Key" }, { "bytes", "data", "Data" },
  { "uint8", "proto.primitive", "Primitive", base.DEC, primitives }, { "uint8", "proto.seq", "Sequence" },
  { "bool", "proto.immediate", "Immediate", 8, nil, 0x80 }, { "bool", "proto.retransmit", "Retransmittable", 8, nil, 0x40 },
  { "uint8", "proto.copies", "Redundancy" }, { "uint32", "proto.key", "Key", base.HEX }, { "uint8", "proto.hop", "Hop, from 1" },
}, keyFields))

local function appended(data, pinfo, tree)
  local magic = data:len() > 2 and data(0, 2):uint() or 0
  if magic == 0x5746 then
    flowset.dissector:call(data:tvb(), pinfo, tree)
  elseif magic == 0x5745 then
    epoch.dissector:call(data:tvb(), pinfo, tree)
  elseif magic == 0x574d then
    mirror.dissector:call(data:tvb(), pinfo, tree)
  end
end

local function dtaReport(range, pinfo, tree, i)
  local first, keyLen, dataLen = range(0, 1):uint(), range(1, 1):uint() % 64, range(2, 2):uint()
  local prim = math.floor(first / 16)
  local size = 4 + keyLen + dataLen + (prim == 2 and 4 or 0) + (prim == 4 and 2 or 0)
  local sub = tree:add(dta, range(0, size), string.format("Report %d: %s", i, primitives[prim] or "unknown"))
  for _, n in ipairs({ "primitive", "immediate", "retransmit" }) do sub:add(d[n], range(0, 1)) end
  for _, n in ipairs({ "copies", "key_len" }) do sub:add(d[n], range(1, 1)) end
  local c = cursor(sub, d, range(2, size - 2))
  c.add("data_len", 2)
  if prim == 2 then c.add("list", 4) end
  if prim == 4 then
    c.add("hop", 1)
    c.add("path", 1)
  end
  if keyLen > 0 then
    local key = c.take(keyLen)
    addKey(sub:add(d["key"], key), d, key)
  end
  if prim == 3 then
    c.add("delta", 8)
  elseif dataLen > 0 then
    local data = c.take(dataLen)
    sub:add(d["data"], data)
    if prim == 2 then appended(data, pinfo, sub) end
  end
  return size
end

-- The prototype's datagrams have one report each; their length shows whether
-- the base header has 2 or 3 bytes.
local protoBody = { [1] = { 9, 17, 33 }, [2] = { 8 }, [3] = { 13 }, [4] = { 9 } }

local function dtaPrototype(buf, tree)
  local prim, base = buf(0, 1):uint(), 0
  for _, body in ipairs(protoBody[prim] or {}) do
    if buf:len() == body + 2 then base = 2 elseif buf:len() == body + 3 then base = 3 end
  end
  if base == 0 then return 0 end
  local c = cursor(tree, d, buf())
  c.add("proto.primitive", 1)
  if base == 3 then
    c.add("proto.seq", 1)
    tree:add(d["proto.retransmit"], buf(2, 1))
  end
  c.add("proto.immediate", 1)
  if prim == 2 then
    c.add("list", 4)
  elseif prim == 4 then
    c.add("proto.key", 4)
    c.add("proto.hop", 1)
  else
    c.add("proto.copies", 1)
    c.add("proto.key", 4)
  end
  if prim == 3 then c.add("delta", 8) else c.add("data", c.left()) end
  return buf:len()
end

function dta.dissector(buf, pinfo, root)
  -- An acknowledgement comes from the port that reports go to, and goes to
  -- the reporter's port or to 40044.
  if pinfo.dst_port == 40044 or (pinfo.src_port == 40040 and pinfo.dst_port ~= 40040) then return ack.dissector:call(buf, pinfo, root) end
  if buf:len() < 2 then return 0 end
  pinfo.cols.protocol = "DTA"
  local tree = root:add(dta, buf())
  local magic = buf(0, 1):uint()
  if magic ~= 0xd1 and magic ~= 0xd2 then return dtaPrototype(buf, tree) end
  local c = cursor(tree, d, buf())
  c.add("magic", 1)
  c.add(magic == 0xd2 and "key_id" or "flags", 1)
  local count = buf(2, 2):uint()
  c.add("count", 2)
  c.add("reporter", 4)
  c.add("seq", 4)
  pinfo.cols.info = string.format("%d reports of switch %d, sequence %d", count, buf(4, 4):uint(), buf(8, 4):uint())
  -- Version 2 has times after the header, and a MAC last; it is not verified.
  local at, reports = 12, buf()
  if magic == 0xd2 then
    c.add("start", 8)
    c.add("sent", 8)
    at, reports = 28, buf(0, buf:len() - 16)
    tree:add(d["mac"], buf(buf:len() - 16, 16))
  end
  for i = 0, count - 1 do at = at + dtaReport(reports(at), pinfo, tree, i) end
  noExtra(tree, reports, at)
  return buf:len()
end

------------------------------------------------------------------------ label

local label, lb = declare("weft.label", "INT-label", {
  { "uint8", "next", "Next header" }, { "uint8", "int_num", "INT_num" }, { "uint8", "max_hop", "MAX_hop" },
  { "uint8", "version", "Version" }, { "uint32", "switch", "Switch" }, { "uint16", "in", "Ingress port" },
  { "uint16", "out", "Egress port" }, { "int64", "time", "Label time (ns)" }, { "uint32", "latency", "Hop latency (ns)" },
  { "uint32", "enqueue", "Queue depth at enqueue (bytes)" }, { "uint32", "dequeue", "Queue depth at dequeue (bytes)" },
  { "uint8", "queue", "Queue" }, { "uint8", "flags", "Flags", base.HEX }, { "uint16", "utilisation", "Utilisation (1/65535)" },
})

function label.dissector(buf, pinfo, root)
  if buf:len() < 36 or buf(3, 1):uint() ~= 1 then return 0 end
  local num, max = buf(1, 1):uint(), buf(2, 1):uint()
  local labels = num > max and num - max or num
  local tree = root:add(label, buf(0, 4 + 32 * labels), string.format("INT-label, %d labels", labels))
  local c = cursor(tree, lb, buf())
  for _, n in ipairs({ "next", "int_num", "max_hop", "version" }) do c.add(n, 1) end
  for i = 1, labels do
    local range = c.take(32)
    local item = cursor(tree:add(label, range, string.format("Label %d", i)), lb, range)
    item.add("switch", 4)
    item.add("in", 2)
    item.add("out", 2)
    item.add("time", 8)
    for _, n in ipairs({ "latency", "enqueue", "dequeue" }) do item.add(n, 4) end
    item.add("queue", 1)
    item.add("flags", 1)
    item.add("utilisation", 2)
  end
  local used = 4 + 32 * labels
  local next = DissectorTable.get("ip.proto"):get_dissector(buf(0, 1):uint())
  if next and buf:len() > used then next:call(buf(used):tvb(), pinfo, root) end
  return buf:len()
end

------------------------------------------------------------------------- poll

local traces = { [0] = "none", [1] = "victim's path", [2] = "causes of pauses", [3] = "path and causes" }
local poll, po = declare("weft.poll", "Weft polling packet", join({
  { "uint8", "flag", "Trace", base.DEC, traces, 0xc0 }, { "uint8", "version", "Version (0: prototype)", base.DEC, nil, 0x3f },
  { "uint8", "hop_limit", "Hop limit" }, { "uint16", "in", "Ingress port" }, { "uint16", "out", "Egress port" },
  { "uint8", "key_len", "Key length" }, { "bool", "returning", "On the path of acknowledgements", 8, nil, 0x80 },
  { "uint8", "unexplained", "Unexplained lateness (code)", base.DEC, nil, 0x7f },
  { "uint32", "host", "Event host" }, { "uint32", "event", "Event number" }, { "int64", "origin", "Origin time (ns)" },
  { "uint16", "proto.in", "Ingress port", base.DEC, nil, 0xff80 }, { "uint16", "proto.out", "Egress port", base.DEC, nil, 0xff80 },
  { "uint8", "proto.event", "Event" },
}, keyFields))

function poll.dissector(buf, pinfo, root)
  pinfo.cols.protocol = "POLL"
  local version = buf(0, 1):uint() % 64
  local tree = root:add(poll, buf())
  tree:add(po["flag"], buf(0, 1))
  tree:add(po["version"], buf(0, 1))
  if version == 0 then
    local c = cursor(tree, po, buf(1, 18))
    c.add("proto.in", 2)
    c.add("proto.out", 2)
    c.add("proto.event", 1)
    c.add("src", 4)
    c.add("dst", 4)
    c.add("proto", 1)
    c.add("srcport", 2)
    c.add("dstport", 2)
    return 19
  end
  local c = cursor(tree, po, buf(1))
  c.add("hop_limit", 1)
  c.add("in", 2)
  c.add("out", 2)
  local n = buf(6, 1):uint()
  c.add("key_len", 1)
  local reverse = c.take(1)
  tree:add(po["returning"], reverse)
  tree:add(po["unexplained"], reverse)
  c.add("host", 4)
  c.add("event", 4)
  c.add("origin", 8)
  addKey(tree, po, c.take(n))
  return 24 + n
end

-------------------------------------------------------------------------- int

local reportTypes = { [0] = "inner only", [1] = "INT", [2] = "IOAM" }
local innerTypes = { [0] = "none", [1] = "TLV", [2] = "domain", [3] = "Ethernet", [4] = "IPv4", [5] = "IPv6" }
local int, ir = declare("weft.int", "INT telemetry report", {
  { "uint32", "version", "Version", base.DEC, nil, 0xf0000000 }, { "uint32", "hardware", "Hardware", base.DEC, nil, 0x0fc00000 },
  { "uint32", "seq", "Sequence", base.DEC, nil, 0x003fffff }, { "uint32", "node", "Node" },
  { "uint8", "type", "Report type", base.DEC, reportTypes, 0xf0 }, { "uint8", "inner", "Inner type", base.DEC, innerTypes, 0x0f },
  { "uint8", "length", "Report length (words)" }, { "uint8", "md_length", "Metadata length (words)" },
  { "bool", "dropped", "Dropped", 8, nil, 0x80 }, { "bool", "congested", "Congested queue", 8, nil, 0x40 },
  { "bool", "tracked", "Tracked flow", 8, nil, 0x20 }, { "bool", "intermediate", "Intermediate", 8, nil, 0x10 },
  { "uint16", "bits", "Metadata bits", base.HEX }, { "uint16", "domain", "Domain", base.HEX },
  { "uint16", "ds_bits", "Domain-specific bits", base.HEX }, { "uint16", "ds_status", "Domain-specific status", base.HEX },
  { "uint16", "in", "Ingress interface" }, { "uint16", "out", "Egress interface" }, { "uint32", "latency", "Hop latency" },
  { "uint8", "queue", "Queue" }, { "uint24", "depth", "Queue occupancy" }, { "uint64", "in_time", "Ingress time" },
  { "uint64", "out_time", "Egress time" }, { "uint32", "logical_in", "Logical ingress" }, { "uint32", "logical_out", "Logical egress" },
  { "uint32", "utilisation", "Egress utilisation" }, { "uint8", "buffer", "Buffer" }, { "uint24", "buffer_depth", "Buffer occupancy" },
  { "uint8", "drop_queue", "Drop queue" }, { "uint8", "drop_reason", "Drop reason" }, { "uint16", "drop_pad", "Padding" },
  { "uint32", "reserved", "Reserved" }, { "bytes", "ds", "Domain-specific metadata" }, { "bytes", "contents", "Inner contents" },
})

-- Metadata by bit, from bit 0, the highest: names and sizes.
local metadata = {
  [0] = { { "reserved", 4 } }, { { "in", 2 }, { "out", 2 } }, { { "latency", 4 } }, { { "queue", 1 }, { "depth", 3 } },
  { { "in_time", 8 } }, { { "out_time", 8 } }, { { "logical_in", 4 }, { "logical_out", 4 } }, { { "utilisation", 4 } },
  { { "buffer", 1 }, { "buffer_depth", 3 } }, [15] = { { "drop_queue", 1 }, { "drop_reason", 1 }, { "drop_pad", 2 } },
}

local function intReport(range, pinfo, tree, root)
  local kind, inner = math.floor(range(0, 1):uint() / 16), range(0, 1):uint() % 16
  for _, n in ipairs({ "type", "inner" }) do tree:add(ir[n], range(0, 1)) end
  tree:add(ir["length"], range(1, 1))
  tree:add(ir["md_length"], range(2, 1))
  for _, n in ipairs({ "dropped", "congested", "tracked", "intermediate" }) do tree:add(ir[n], range(3, 1)) end
  if range:len() == 4 then return end
  local c = cursor(tree, ir, range(4))
  if kind == 1 then
    local words, bits = range(2, 1):uint(), range(4, 2):uint()
    for _, n in ipairs({ "bits", "domain", "ds_bits", "ds_status" }) do c.add(n, 2) end
    local before = c.left()
    for i = 0, 15 do
      if math.floor(bits / 2 ^ (15 - i)) % 2 == 1 then
        for _, part in ipairs(metadata[i] or { { "reserved", 4 } }) do c.add(part[1], part[2]) end
      end
    end
    local ds = words * 4 - (before - c.left())
    if ds > 0 then c.add("ds", ds) end
  end
  if c.left() > 0 then
    local contents = c.take(c.left())
    tree:add(ir["contents"], contents)
    local name = ({ [3] = "eth_withoutfcs", [4] = "ip", [5] = "ipv6" })[inner]
    if name then Dissector.get(name):call(contents:tvb(), pinfo, root) end
  end
end

function int.dissector(buf, pinfo, root)
  if buf:len() < 8 or math.floor(buf(0, 1):uint() / 16) ~= 2 then return 0 end
  local tree = root:add(int, buf())
  for _, n in ipairs({ "version", "hardware", "seq" }) do tree:add(ir[n], buf(0, 4)) end
  tree:add(ir["node"], buf(4, 4))
  local at = 8
  while at < buf:len() do
    local words = buf(at + 1, 1):uint()
    local size = words == 255 and buf:len() - at or 4 + 4 * words
    intReport(buf(at, size), pinfo, tree:add(int, buf(at, size), "Report"), root)
    at = at + size
  end
  pinfo.cols.protocol = "INT-REPORT"
  return buf:len()
end

--------------------------------------------------------------------- mellanox

local mellanox, mx = declare("weft.mellanox", "Mellanox mirror", { { "bytes", "pad", "Padding" } })

function mellanox.dissector(buf, pinfo, root)
  if buf:len() < 36 then return 0 end
  root:add(mellanox, buf(0, 22)):add(mx["pad"], buf(0, 22))
  Dissector.get("eth_withoutfcs"):call(buf(22):tvb(), pinfo, root)
  return buf:len()
end

----------------------------------------------------------------- registration

DissectorTable.get("udp.port"):add(40040, dta)
DissectorTable.get("udp.port"):add(40044, ack)
DissectorTable.get("udp.port"):add(32766, int)
DissectorTable.get("ip.proto"):add(253, label)
DissectorTable.get("ethertype"):add(0x6888, poll)
DissectorTable.get("gre.proto"):add(0x8949, mellanox)
