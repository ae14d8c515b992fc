package api

import (
	"net"
	"sync"
)

// limitedListener is a listener of which no more than so many connections are open. One
// more is closed at once, and counted: a client that opens connections and asks
// nothing must not use up the files of the process.
type limitedListener struct {
	net.Listener
	slots chan struct{}
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

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
