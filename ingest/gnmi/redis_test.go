package gnmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// redis is a connection to a Redis server of this test: its COUNTERS_DB.
type redis struct {
	mu   sync.Mutex
	conn net.Conn
	r    *bufio.Reader
}

// startRedis runs a server on a socket of its own.
func startRedis(t *testing.T) *redis {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Fatalf("%v (install it: scripts/need redis-server:redis-server)", err)
	}
	socket := filepath.Join(t.TempDir(), "redis.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			r := &redis{conn: conn, r: bufio.NewReader(conn)}
			r.do("SELECT", "2") // COUNTERS_DB
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server: %v", err)
		}
	}
}

// do sends a command and returns its answer: text, or a list of texts.
func (c *redis) do(args ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return nil
	}
	list, err := c.answer()
	if err != nil {
		panic(fmt.Sprintf("redis: %v: %v", args, err))
	}
	return list
}

func (c *redis) answer() ([]string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '+', ':':
		return []string{line[1:]}, nil
	case '-':
		return nil, errors.New(line[1:])
	case '$':
		if n < 0 {
			return nil, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return []string{string(b[:n])}, err
	default: // *
		var list []string
		for range n {
			one, err := c.answer()
			if err != nil {
				return nil, err
			}
			list = append(list, one...)
		}
		return list, nil
	}
}

// hash returns a hash.
func (c *redis) hash(key string) map[string]string {
	m := map[string]string{}
	list := c.do("HGETALL", key)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

// set sets fields of a hash.
func (c *redis) set(key string, pairs ...string) { c.do(append([]string{"HSET", key}, pairs...)...) }

// addPort fills SONiC's schema for a port: names that point to objects, and their
// counters.
func (c *redis) addPort(name string) {
	c.set("COUNTERS_PORT_NAME_MAP", name, "oid:0x1"+name)
	c.set("COUNTERS:oid:0x1"+name, "SAI_PORT_STAT_IF_IN_OCTETS", "0", "SAI_PORT_STAT_IF_OUT_OCTETS", "0", "SAI_PORT_STAT_IF_IN_VLAN_DISCARDS", "0")
	for class := range 10 {
		object := fmt.Sprintf("%s:%d", name, class)
		c.set("COUNTERS_QUEUE_NAME_MAP", object, "oid:0x15"+object)
		c.set("COUNTERS:oid:0x15"+object, "SAI_QUEUE_STAT_BYTES", "0", "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", "0")
		if class < 8 {
			c.set("COUNTERS_PG_NAME_MAP", object, "oid:0x1a"+object)
			c.set("PERIODIC_WATERMARKS:oid:0x1a"+object, "SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES", "0")
		}
	}
}

// setPort sets counters of a port, setQueue those of a queue, setGroup those of a
// priority group.
func (c *redis) setPort(name string, pairs ...string) { c.set("COUNTERS:oid:0x1"+name, pairs...) }

func (c *redis) setQueue(object string, pairs ...string) { c.set("COUNTERS:oid:0x15"+object, pairs...) }

func (c *redis) setGroup(object string, pairs ...string) {
	c.set("PERIODIC_WATERMARKS:oid:0x1a"+object, pairs...)
}
