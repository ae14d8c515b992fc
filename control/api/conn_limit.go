package api

import (
	"net"
	"sync"
)

// bounded is a listener of which no more than so many connections are open. One
// more is closed at once, and counted: a client that opens connections and asks
// nothing must not use up the files of the process.
type bounded struct {
	net.Listener
	places chan struct{}
	refuse func()
}

func (l *bounded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placed{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			l.refuse()
			_ = c.Close()
		}
	}
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

func (c *placed) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
