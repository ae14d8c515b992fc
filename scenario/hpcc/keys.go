package hpcc

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// key is a key of a configuration: one to set, or one without effect here. An
// error of set follows the key's name.
type key struct {
	set     func(c *Config, values []string) error
	ignored string // because …
}

// Reasons for keys without effect.
const (
	whyDynamic = "thresholds are always dynamic, as they are in the original"
	whyLinks   = "every link of the topology has its own"
	whyChunk   = "every packet is acknowledged and senders go back N to the missing byte"
	whyTrace   = "packets are captured as pcapng with --pcap"
	whyQueue   = "queue depths of all ports are written with --out"
	whyControl = "HPCC-PINT is not among Weft's congestion controls"
	whyDir     = "output is written with --out"
)

var keys = map[string]key{
	"TOPOLOGY_FILE":   {set: path(func(c *Config) *string { return &c.Topology })},
	"FLOW_FILE":       {set: path(func(c *Config) *string { return &c.Flows })},
	"ROUTE_FILE":      {set: path(func(c *Config) *string { return &c.Routes })},
	"FCT_OUTPUT_FILE": {set: path(func(c *Config) *string { return &c.FCT })},
	"PFC_OUTPUT_FILE": {set: path(func(c *Config) *string { return &c.PFC })},

	"SIMULATOR_STOP_TIME": {set: seconds(func(c *Config) *model.Time { return &c.Stop })},
	"PACKET_PAYLOAD_SIZE": {set: whole(64, 9600, func(c *Config, n uint64) { c.Payload = int32(n) })},

	"CC_MODE":                {set: setMode},
	"CLAMP_TARGET_RATE":      {set: flag(func(c *Config) *bool { return &c.DCQCN.ClampTarget })},
	"ALPHA_RESUME_INTERVAL":  {set: timer(func(c *Config) *time.Duration { return &c.DCQCN.AlphaInterval })},
	"RATE_DECREASE_INTERVAL": {set: timer(func(c *Config) *time.Duration { return &c.DCQCN.DecreaseInterval })},
	"RP_TIMER":               {set: timer(func(c *Config) *time.Duration { return &c.DCQCN.IncreaseInterval })},
	"EWMA_GAIN":              {set: share(false, func(c *Config) *float64 { return &c.DCQCN.Gain })},
	"FAST_RECOVERY_TIMES":    {set: whole(0, 1e6, func(c *Config, n uint64) { c.DCQCN.FastRecovery = int(n) })},
	"RATE_AI":                {set: rate(0, func(c *Config) *model.Rate { return &c.DCQCN.AI })},
	"RATE_HAI":               {set: rate(0, func(c *Config) *model.Rate { return &c.DCQCN.HAI })},
	"MIN_RATE":               {set: rate(1, func(c *Config) *model.Rate { return &c.DCQCN.MinRate })},

	"U_TARGET":        {set: share(false, func(c *Config) *float64 { return &c.HPCC.Target })},
	"MI_THRESH":       {set: whole(0, 1e6, func(c *Config, n uint64) { c.HPCC.Stages = uint32(n) })},
	"INT_MULTI":       {set: whole(1, 1<<16, func(c *Config, n uint64) { c.HPCC.Multi = uint32(n) })},
	"FAST_REACT":      {set: flag(func(c *Config) *bool { return &c.HPCC.Fast })},
	"MULTI_RATE":      {set: flag(func(c *Config) *bool { return &c.HPCC.PerHop })},
	"SAMPLE_FEEDBACK": {set: flag(func(c *Config) *bool { return &c.HPCC.Sampled })},
	"DCTCP_RATE_AI":   {set: rate(0, func(c *Config) *model.Rate { return &c.DCTCPAI })},

	"ENABLE_QCN": {set: flag(func(c *Config) *bool { return &c.ECN })},
	"KMIN_MAP":   {set: depths(func(c *Config) *map[model.Rate]model.Bytes { return &c.Kmin })},
	"KMAX_MAP":   {set: depths(func(c *Config) *map[model.Rate]model.Bytes { return &c.Kmax })},
	"PMAX_MAP":   {set: setPmax},

	"BUFFER_SIZE":     {set: whole(1, 1<<20, func(c *Config, n uint64) { c.bufferSize = n })},
	"HAS_WIN":         {set: flag(func(c *Config) *bool { return &c.Window })},
	"GLOBAL_T":        {set: flag(func(c *Config) *bool { return &c.GlobalWindow })},
	"VAR_WIN":         {set: flag(func(c *Config) *bool { return &c.VarWindow })},
	"RATE_BOUND":      {set: flag(func(c *Config) *bool { return &c.RateBound })},
	"ACK_HIGH_PRIO":   {set: flag(func(c *Config) *bool { return &c.AckFirst })},
	"L2_ACK_INTERVAL": {set: whole(1, math.MaxUint32, func(c *Config, n uint64) { c.ackInterval = n })},

	"ERROR_RATE_PER_LINK": {set: share(true, func(c *Config) *float64 { return &c.ErrorRate })},
	"LINK_DOWN":           {set: setLinkDown},
	"PAUSE_TIME":          {set: setPauseTime},

	"AGENT_NODE":      {set: nodes(func(c *Config) *[]model.NodeID { return &c.Agents })},
	"NO_CC_NODE":      {set: nodes(func(c *Config) *[]model.NodeID { return &c.NoCC })},
	"AGENT_THRESHOLD": {set: hawkeyeOnly(micros(func(c *Config) *time.Duration { return &c.Threshold }))},
	"EPOCH_TIME":      {set: hawkeyeOnly(whole(1, 1e12, func(c *Config, n uint64) { c.Epoch = time.Duration(n) }))},

	"USE_DYNAMIC_PFC_THRESHOLD": {ignored: whyDynamic},
	"DATA_RATE":                 {ignored: whyLinks},
	"LINK_DELAY":                {ignored: whyLinks},
	"L2_CHUNK_SIZE":             {ignored: whyChunk},
	"L2_BACK_TO_ZERO":           {ignored: whyChunk},
	"TRACE_FILE":                {ignored: whyTrace},
	"TRACE_OUTPUT_FILE":         {ignored: whyTrace},
	"ENABLE_TRACE":              {ignored: whyTrace},
	"QLEN_MON_FILE":             {ignored: whyQueue},
	"QLEN_MON_START":            {ignored: whyQueue},
	"QLEN_MON_END":              {ignored: whyQueue},
	"PINT_LOG_BASE":             {ignored: whyControl},
	"PINT_PROB":                 {ignored: whyControl},
	"DIR":                       {ignored: whyDir},
}

// nearest suggests keys for an unknown one: those with the longest common
// prefix, ignoring case.
func nearest(name string) string {
	name = strings.ToUpper(name)
	all := slices.Sorted(maps.Keys(keys))
	alike := func(k string) (n int) {
		for n < len(k) && n < len(name) && k[n] == name[n] {
			n++
		}
		return n
	}
	most := 3 // shorter prefixes mean nothing
	for _, k := range all {
		most = max(most, alike(k))
	}
	if all = slices.DeleteFunc(all, func(k string) bool { return alike(k) < most }); len(all) == 0 {
		return "a key of an HPCC configuration, such as TOPOLOGY_FILE (docs/hpcc.md has all)"
	}
	return strings.Join(all, " or ")
}
