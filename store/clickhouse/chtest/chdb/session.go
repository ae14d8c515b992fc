package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	wire "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// revision of the protocol: settings are texts, and blocks are as in the format Native.
const revision = 54440

// session is one connection.
type session struct {
	*engine
	version  [3]int
	database string
	scratch  string // directory of this session
	in       *wire.Reader
	out      wire.Buffer
	conn     net.Conn
}

// serve answers until the client leaves.
func (s *session) serve() error {
	if err := s.hello(); err != nil {
		return err
	}
	for {
		code, err := s.in.UVarInt()
		if err != nil {
			return err
		}
		switch code {
		case proto.ClientPing:
			s.out.PutByte(proto.ServerPong)
		case proto.ClientCancel:
			return nil
		case proto.ClientQuery:
			var q wire.Query
			if err := q.DecodeAware(s.in, revision); err != nil {
				return err
			}
			if err := s.data(nil); err != nil { // external tables: none
				return err
			}
			if err := s.answer(&q); err != nil {
				return err
			}
		default:
			return fmt.Errorf("packet %d of the client", code)
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

func (s *session) flush() error {
	_, err := s.conn.Write(s.out.Buf)
	s.out.Reset()
	return err
}

func (s *session) hello() error {
	if _, err := s.in.UVarInt(); err != nil {
		return err
	}
	if _, err := s.in.Str(); err != nil {
		return err
	}
	for range 3 { // version, revision
		if _, err := s.in.UVarInt(); err != nil {
			return err
		}
	}
	var texts [3]string // database, user, password
	for i := range texts {
		var err error
		if texts[i], err = s.in.Str(); err != nil {
			return err
		}
	}
	s.database = texts[0]
	s.out.PutByte(proto.ServerHello)
	s.out.PutString("chDB")
	s.out.PutUVarInt(uint64(s.version[0]))
	s.out.PutUVarInt(uint64(s.version[1]))
	s.out.PutUVarInt(revision)
	s.out.PutString("UTC")
	s.out.PutString("chDB")
	s.out.PutUVarInt(uint64(s.version[2]))
	return s.flush()
}

// data reads a packet with a block, and adds its rows to native; an empty one ends the data.
func (s *session) data(native *wire.Buffer) error {
	for {
		code, err := s.in.UVarInt()
		if err != nil {
			return err
		}
		if code != proto.ClientData {
			return fmt.Errorf("packet %d, want data", code)
		}
		if _, err := s.in.Str(); err != nil {
			return err
		}
		b := proto.NewBlock()
		if err := b.Decode(s.in, revision); err != nil {
			return err
		}
		if b.Rows() == 0 {
			return nil
		}
		if native == nil {
			return fmt.Errorf("%d rows without a statement", b.Rows())
		}
		if err := b.Encode(native, 0); err != nil {
			return err
		}
	}
}

var insertNative = regexp.MustCompile(`(?is)^\s*INSERT\s+INTO\s+(\S+)\s*(\(.*\))\s+FORMAT\s+Native\s*$`)

// answer does a query. Errors of the engine go to the client.
func (s *session) answer(q *wire.Query) error {
	settings := settingsOf(q)
	if m := insertNative.FindStringSubmatch(q.Body); m != nil {
		return s.insert(m[1], m[2], settings)
	}
	blocks, err := s.ask(q.Body + settings)
	if err != nil {
		s.exception(err)
		return nil
	}
	if reads(q.Body) { // a client expects the columns first
		if err := s.columns(q.Body, blocks); err != nil {
			s.exception(err)
			return nil
		}
	}
	for _, b := range blocks {
		if err := s.block(b); err != nil {
			return err
		}
	}
	s.out.PutByte(proto.ServerEndOfStream)
	return nil
}

func reads(body string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimSpace(body)), "SELECT")
}

// ask does a statement in the database of the session.
func (s *session) ask(statement string) (blocks []*proto.Block, err error) {
	answer, err := s.run([]byte(statement))
	if err != nil {
		return nil, err
	}
	in := wire.NewReader(bytes.NewReader(answer))
	for {
		b := proto.NewBlock()
		if err := b.Decode(in, 0); errors.Is(err, io.EOF) {
			return blocks, nil
		} else if err != nil {
			return nil, fmt.Errorf("answer: %w", err)
		}
		blocks = append(blocks, b)
	}
}

// run does a statement in the database of the session: the engine has one for all of them.
func (s *session) run(statement []byte) ([]byte, error) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if s.database != "" && s.database != s.engine.database {
		if _, err := s.do([]byte("USE " + s.database)); err != nil {
			return nil, err
		}
		s.engine.database = s.database
	}
	return s.do(statement)
}

// columns sends a block without rows.
func (s *session) columns(query string, blocks []*proto.Block) error {
	var names, types []string
	if len(blocks) > 0 {
		for _, c := range blocks[0].Columns {
			names, types = append(names, c.Name()), append(types, string(c.Type()))
		}
	} else {
		described, err := s.ask("DESCRIBE (" + query + ")")
		if err != nil {
			return err
		}
		for _, b := range described {
			for i := range b.Rows() {
				names, types = append(names, b.Columns[0].Row(i, false).(string)), append(types, b.Columns[1].Row(i, false).(string))
			}
		}
	}
	s.head(len(names))
	for i := range names {
		s.out.PutString(names[i])
		s.out.PutString(types[i])
	}
	return nil
}

// head begins a packet with a block that has no rows.
func (s *session) head(columns int) {
	s.out.PutByte(proto.ServerData)
	s.out.PutString("")
	s.out.PutUVarInt(1)
	s.out.PutBool(false)
	s.out.PutUVarInt(2)
	s.out.PutInt32(-1)
	s.out.PutUVarInt(0)
	s.out.PutUVarInt(uint64(columns))
	s.out.PutUVarInt(0)
}

func (s *session) block(b *proto.Block) error {
	s.out.PutByte(proto.ServerData)
	s.out.PutString("")
	return b.Encode(&s.out, revision)
}

// insert takes the rows that follow a statement.
func (s *session) insert(table, names, settings string) error {
	if err := s.columns("SELECT "+strings.Trim(names, "()")+" FROM "+table, nil); err != nil {
		s.exception(err)
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	var rows wire.Buffer
	if err := s.data(&rows); err != nil {
		return err
	}
	if len(rows.Buf) > 0 {
		// The engine reads no more than a megabyte of rows that are part of a statement.
		file := filepath.Join(s.scratch, "rows")
		if err := os.WriteFile(file, rows.Buf, 0o600); err != nil {
			return err
		}
		defer os.Remove(file)
		if _, err := s.run(fmt.Appendf(nil, "INSERT INTO %s %s FROM INFILE '%s'%s FORMAT Native", table, names, file, settings)); err != nil {
			s.exception(err)
			return nil
		}
	}
	s.out.PutByte(proto.ServerEndOfStream)
	return nil
}

func (s *session) exception(err error) {
	s.out.PutByte(proto.ServerException)
	s.out.PutInt32(0)
	s.out.PutString("chDB")
	s.out.PutString(err.Error())
	s.out.PutString("")
	s.out.PutBool(false)
}

func settingsOf(q *wire.Query) string {
	var list []string
	for _, v := range q.Settings {
		list = append(list, fmt.Sprintf("%s = '%s'", v.Key, v.Value))
	}
	if len(list) == 0 {
		return ""
	}
	return " SETTINGS " + strings.Join(list, ", ")
}
