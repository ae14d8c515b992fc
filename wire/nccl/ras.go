package nccl

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Member is a rank of a communicator as NCCL's RAS service reports it.
type Member struct {
	Group Group
	Rank  int
	Host  string    // address of the host
	Time  time.Time // of the report, by a clock without a zone: only to order reports
	// Launched is how many collectives of each operation it has launched.
	Launched map[string]uint64
	Missing  bool   // it did not answer
	Dead     bool   // and is not asked any more
	Error    string // of its communicator, in RAS's words; empty: none
}

// rasRank is a rank in the output of ncclras -f json, of NCCL 2.28.7 and later.
type rasRank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"`
	Status struct {
		Init         int  `json:"init_state"`
		Async        int  `json:"async_error"`
		Abort        bool `json:"abort_flag"`
		Unresponsive bool `json:"unresponsive"`
		Dead         bool `json:"considered_dead"`
	} `json:"status"`
	Counts map[string]uint64 `json:"collective_counts"`
}

// Values of ncclResult_t in init_state and async_error.
const (
	ncclSuccess    = 0
	ncclInProgress = 7
)

// readRAS reads a report, of which the key "nccl_version" was read.
func readRAS(d *decoder, limit int) (*Dump, error) {
	out := &Dump{}
	var at time.Time
	err := d.fields("nccl_version", func(key string) error {
		switch key {
		case "timestamp":
			var text string
			if err := d.value(&text); err != nil {
				return err
			}
			var err error
			if at, err = time.Parse(time.DateTime, text); err != nil {
				return fmt.Errorf("timestamp %.40q, want one such as 2025-12-19 13:06:53", text)
			}
			return nil
		case "communicators":
			return d.list("communicators", func() error { return d.communicator(out, limit) })
		}
		return d.skip()
	})
	for i := range out.Members {
		out.Members[i].Time = at
	}
	return out, err
}

// communicator reads one communicator.
func (d *decoder) communicator(out *Dump, limit int) error {
	if t, err := d.token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, errors.New("a communicator is no object"))
	}
	first, err := d.token()
	if err != nil || first == json.Delim('}') {
		return err
	}
	var hash, second string
	var g Group
	begin := len(out.Members)
	key, _ := first.(string)
	if err := d.fields(key, func(key string) error {
		switch key {
		case "hash":
			return d.value(&hash)
		case "secondary_hash":
			return d.value(&second)
		case "size":
			return d.value(&g.Size)
		case "ranks", "missing_ranks":
			return d.list(key, func() error { return d.member(out, key == "missing_ranks", limit) })
		}
		return d.skip()
	}); err != nil {
		return err
	}
	g.ID = hash
	if second != "" {
		g.ID += "/" + second // hash alone is not unique
	}
	for i := begin; i < len(out.Members); i++ {
		out.Members[i].Group = g
	}
	return checkName("hash", g.ID)
}

// member reads one rank.
func (d *decoder) member(out *Dump, missing bool, limit int) error {
	var r rasRank
	if err := d.value(&r); err != nil {
		return err
	}
	if len(out.Members) >= limit {
		out.Full = true
		return nil
	}
	m := Member{
		Rank: r.Rank, Host: r.Host, Launched: r.Counts, Missing: missing || r.Status.Unresponsive, Dead: r.Status.Dead,
	}
	switch {
	case r.Status.Init != ncclSuccess && r.Status.Init != ncclInProgress:
		m.Error = fmt.Sprintf("init_state %d", r.Status.Init)
	case r.Status.Async != ncclSuccess && r.Status.Async != ncclInProgress:
		m.Error = fmt.Sprintf("async_error %d", r.Status.Async)
	case r.Status.Abort:
		m.Error = "abort_flag"
	}
	if len(m.Launched) > maxOperations {
		return fmt.Errorf("collective_counts of %d operations, want at most %d", len(m.Launched), maxOperations)
	}
	for op := range m.Launched {
		if err := checkName("operation", op); err != nil {
			return err
		}
	}
	out.Members = append(out.Members, m)
	return errors.Join(checkRank(m.Rank), checkName("host", m.Host))
}

// maxOperations bounds the kinds of collectives of a rank; NCCL 2.29 has five.
const maxOperations = 64

// fields reads the rest of an object whose first key was read; one reads a value.
func (d *decoder) fields(key string, one func(key string) error) error {
	for {
		if err := one(key); err != nil {
			return err
		}
		t, err := d.token()
		if err != nil || t == json.Delim('}') {
			return err
		}
		key, _ = t.(string) // the decoder takes no other keys
	}
}

// list reads a list; one reads a value.
func (d *decoder) list(what string, one func() error) error {
	if t, err := d.token(); err != nil || t != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("%s is no list", what))
	}
	for n := 0; d.more(); n++ {
		if err := one(); err != nil {
			return fmt.Errorf("%s %d: %w", what, n, err)
		}
	}
	_, err := d.token()
	return err
}
