// Command chdb answers ClickHouse's native protocol for tests with chDB: the engine of a
// present ClickHouse in a library, which has no server. It does one statement at a time.
package main

import (
	"fmt"
	"net"
	"os"

	wire "github.com/ClickHouse/ch-go/proto"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: chdb LIBRARY DIRECTORY ADDRESS")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "chdb:", run(os.Args[1], os.Args[2], os.Args[3]))
	os.Exit(1)
}

// run serves until it cannot, and returns why.
func run(library, dir, address string) error {
	e, err := openEngine(library, dir)
	if err != nil {
		return err
	}
	var version [3]int
	s := session{engine: e}
	blocks, err := s.ask("SELECT version()")
	if err != nil {
		return err
	}
	if _, err := fmt.Sscanf(blocks[0].Columns[0].Row(0, false).(string), "%d.%d.%d", &version[0], &version[1], &version[2]); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			scratch, err := os.MkdirTemp("", "chdb")
			if err != nil {
				return
			}
			defer os.RemoveAll(scratch)
			s := session{engine: e, version: version, scratch: scratch, in: wire.NewReader(c), conn: c}
			_ = s.serve() // a client that leaves is no error of the server
		}()
	}
}
