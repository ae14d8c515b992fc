package api

import (
	"net"
	"sync"
)

// limitedListener bounds the number of open connections. It closes and counts
// excess connections, so that clients that only connect cannot exhaust the
// process's file descriptors.
type limitedListener struct {
	net.Listener
	slots    chan struct{}
	onRefuse func()
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &limitedConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			l.onRefuse()
			_ = c.Close()
		}
	}
}

// limitedConn releases its slot when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
