package gnmi

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// fabric has one switch tor0 with ports Ethernet0 and Ethernet4 at 100 Gb/s.
func fabric(t testing.TB) *source.Fabric { return fabricAt(t, "10.0.0.5") }

// fabricAt is fabric with another address of the switch.
func fabricAt(t testing.TB, address string) *source.Fabric {
	port := func(text string) (model.PortID, bool) {
		k, err := strconv.Atoi(strings.TrimPrefix(text, "Ethernet"))
		return model.PortID(k/4 + 1), err == nil && strings.HasPrefix(text, "Ethernet") && k%4 == 0 && k <= 4
	}
	s := source.Switch{
		ID: 5, Name: "tor0", Ports: 2, Port: port, Rate: func(model.PortID) model.Rate { return 100e9 },
		PortName: func(p model.PortID) string { return fmt.Sprintf("Ethernet%d", 4*(p-1)) },
	}
	ids, err := identity.New([]identity.Switch{{ID: 5, Name: "tor0", Addrs: []netip.Addr{netip.MustParseAddr(address)}, Ports: 2, Port: port}})
	if err != nil {
		t.Fatal(err)
	}
	return &source.Fabric{Switches: []source.Switch{s}, Identity: ids}
}

func configFor(address, ca, password string) *Config {
	c := Source.NewConfig().(*Config)
	c.Targets, c.Interval, c.CA, c.Username, c.PasswordFile = []string{"tor0=" + address}, 20*time.Millisecond, ca, "admin", password
	return c
}

// run subscribes until the test ends. Readings come out of the channel.
func run(t *testing.T, c *Config) (readings chan portstat.Reading, l *client) {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	readings = make(chan portstat.Reading, 100_000)
	d, err := c.NewDecoder(fabric(t), source.Output{Reading: func(r *portstat.Reading) { readings <- *r }})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := c.OpenSocket(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	l = opened.(*client)
	l.firstTry = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return readings, l
}

// await takes readings until one is as wanted.
func await(t *testing.T, readings chan portstat.Reading, what string, ok func(r *portstat.Reading) bool) portstat.Reading {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case r := <-readings:
			if ok(&r) {
				return r
			}
		case <-late:
			t.Fatalf("no reading with %s", what)
		}
	}
}

func lost(l source.Listener, reason string) uint64 {
	for _, one := range l.Counters().Losses {
		if one.Reason == reason {
			return one.Count
		}
	}
	return 0
}

// TestSONiCOverRedis: counters of a Redis with SONiC's schema come over TLS as readings, in
// every form of subscription.
func TestSONiCOverRedis(t *testing.T) {
	pair, ca, password := certificate(t)
	for _, by := range []string{ByPort, ByTable, ByField} {
		t.Run(by, func(t *testing.T) {
			db := startRedis(t)
			db.addPort("Ethernet0")
			db.addPort("Ethernet4")
			db.addPort("Ethernet8") // that the topology has not
			address, _ := startTarget(t, &sonic{db: db}, "127.0.0.1:0", pair)
			c := configFor(address, ca, password)
			c.Subscribe = by
			readings, l := run(t, c)
			await(t, readings, "the first port", func(r *portstat.Reading) bool { return r.Port == model.Port{Node: 5, Port: 1} })

			db.setQueue("Ethernet4:3", "SAI_QUEUE_STAT_BYTES", "900", "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", "123456",
				"PFC_WD_STATUS", "stormed", "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "1")
			db.setGroup("Ethernet4:4", "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES", "777")
			db.setPort("Ethernet4", "SAI_PORT_STAT_PFC_3_RX_PKTS", "12", "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US", "100")
			await(t, readings, "the state of queue 3", func(r *portstat.Reading) bool {
				k, g := &r.Class[3], &r.Class[4]
				return r.Port.Port == 2 && r.Source == portstat.GNMI && r.Has.All(portstat.HasBytes) &&
					k.Has.All(portstat.HasQueueWatermark|portstat.HasWatchdog|portstat.HasRxPauses|portstat.HasRxPaused) &&
					k.QueueWatermark == 123456 && k.Watchdog == portstat.Stormed && g.HeadroomWatermark == 777
			})
			db.setPort("Ethernet4", "SAI_PORT_STAT_IF_OUT_OCTETS", "5000", "SAI_PORT_STAT_PFC_3_RX_PKTS", "20", "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US", "3100")
			var bytes, pauses uint64
			var paused time.Duration
			await(t, readings, "all that was counted", func(r *portstat.Reading) bool {
				if r.Port.Port == 2 {
					bytes, pauses, paused = bytes+r.TxBytes, pauses+r.Class[3].RxPauses, paused+r.Class[3].RxPaused
				}
				return bytes == 5000 && pauses == 8 && paused == 3*time.Millisecond
			})
			// Cleared counters are no traffic.
			db.setPort("Ethernet4", "SAI_PORT_STAT_IF_OUT_OCTETS", "3")
			for late := time.Now().Add(time.Minute); lost(l, "reset") == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(late) {
					t.Fatal("no reset was counted")
				}
			}
			if n := lost(l, "bad value") + lost(l, "malformed") + lost(l, "implausible"); n != 0 {
				t.Errorf("losses %+v; want none of values", l.Counters().Losses)
			}
		})
	}
}

// TestReconnects: a target that went away is dialed until it is back, and what it
// counted meanwhile is in the next reading.
func TestReconnects(t *testing.T) {
	pair, ca, password := certificate(t)
	db := startRedis(t)
	db.addPort("Ethernet0")
	address, stop := startTarget(t, &sonic{db: db}, "127.0.0.1:0", pair)
	readings, l := run(t, configFor(address, ca, password))
	await(t, readings, "a port", func(*portstat.Reading) bool { return true })
	stop()
	for late := time.Now().Add(time.Minute); lost(l, "connection failed") < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%+v; want repeated attempts", l.Counters().Losses)
		}
	}
	db.setPort("Ethernet0", "SAI_PORT_STAT_IF_IN_OCTETS", "4242")
	startTarget(t, &sonic{db: db}, address, pair)
	await(t, readings, "the bytes of the outage", func(r *portstat.Reading) bool { return r.RxBytes == 4242 })
	if lost(l, "disconnected") != 1 {
		t.Errorf("%d disconnects; want 1", lost(l, "disconnected"))
	}
}

// TestRefusals: neither a wrong password nor an unknown certificate gives a stream.
func TestRefusals(t *testing.T) {
	pair, ca, password := certificate(t)
	_, otherCA, _ := certificate(t)
	db := startRedis(t)
	db.addPort("Ethernet0")
	address, _ := startTarget(t, &sonic{db: db}, "127.0.0.1:0", pair)
	for name, change := range map[string]func(c *Config){
		"wrong user":          func(c *Config) { c.Username = "guest" },
		"unknown certificate": func(c *Config) { c.CA = otherCA },
		"no TLS":              func(c *Config) { c.TLS, c.Username, c.PasswordFile = TLSOff, "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			c := configFor(address, ca, password)
			change(c)
			readings, l := run(t, c)
			for late := time.Now().Add(time.Minute); lost(l, "connection failed") < 2; time.Sleep(time.Millisecond) {
				if time.Now().After(late) {
					t.Fatalf("%+v; want failures", l.Counters().Losses)
				}
			}
			if len(readings) != 0 {
				t.Error("there are readings all the same")
			}
		})
	}
}

// TestAliases: SONiC names queues by aliases where it is configured so.
func TestAliases(t *testing.T) {
	pair, ca, password := certificate(t)
	db := startRedis(t)
	db.addPort("Ethernet0")
	db.setQueue("Ethernet0:3", "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", "99")
	address, _ := startTarget(t, &sonic{db: db, alias: "etp"}, "127.0.0.1:0", pair)
	readings, _ := run(t, configFor(address, ca, password))
	await(t, readings, "the queue of an alias", func(r *portstat.Reading) bool { return r.Class[3].QueueWatermark == 99 })
}

func TestCheck(t *testing.T) {
	good := func() *Config { return configFor("127.0.0.1:8080", "", "file") }
	for want, change := range map[string]func(c *Config){
		"":                 func(*Config) {},
		"gnmi.targets":     func(c *Config) { c.Targets = []string{"tor0"} },
		"another target":   func(c *Config) { c.Targets = append(c.Targets, "tor0=127.0.0.1:9") },
		"gnmi.interval":    func(c *Config) { c.Interval = time.Millisecond },
		"gnmi.model":       func(c *Config) { c.Model = "yang" },
		"gnmi.subscribe":   func(c *Config) { c.Subscribe = "all" },
		"gnmi.tls":         func(c *Config) { c.TLS = "on" },
		"with tls off":     func(c *Config) { c.TLS = TLSOff },
		"gnmi.cert":        func(c *Config) { c.Cert = "cert.pem" },
		"password_file \"": func(c *Config) { c.PasswordFile = "" },
	} {
		c := good()
		change(c)
		err := c.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check = %v; want %q", err, want)
		}
	}
}
