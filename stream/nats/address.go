package nats

import (
	"fmt"
	"net"
	"strconv"
)

// splitAddress splits "host:port".
func splitAddress(s string) (string, int, error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("nats: address %q, want host:port", s)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("nats: port of %q, want 0 to 65535", s)
	}
	return host, int(port), nil
}
