package rocev2

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/weft-telemetry/weft/ingest/keyfile"
)

// The exchange is six lines of JSON:
//
//	translator  Hello      version, name, key id, nonce
//	collector   Challenge  version, nonce
//	translator  Request    address, queue pair, PSN
//	translator  Proof      HMAC of the lines above
//	collector   Reply      address, queue pair, regions, heads
//	collector   Proof      HMAC of the lines above
//
// The HMAC's key is the translator's. It covers every byte of both directions so
// far, so a third party on the path can neither change a field nor use lines of
// another exchange, whose nonces differ. The translator proves itself first: the
// collector computes nothing with a key that a stranger sees, and a stranger
// gets neither regions nor R_Keys, nor learns which names have keys.

// Version is that of the exchange.
const Version = 2

// nonceSize is the number of random bytes of each side.
const nonceSize = 32

// Limits of one line. A reply has 21 bytes for the head of each list.
const (
	maxRequest = 4 << 10
	maxReply   = 16 << 20
)

// Keys are the keys of translators: a keyfile.Ring or keyfile.File.
type Keys interface {
	// Keys returns the keys of a name, the one that signs first.
	Keys(name string) []keyfile.Key
	// Generation changes when keys may have changed.
	Generation() uint64
}

// Hello is the translator's first message.
type Hello struct {
	Version int    `json:"version"`
	Name    string `json:"name"`          // of the translator
	Key     *uint8 `json:"key,omitempty"` // id of its key; nil if it has none
	Nonce   []byte `json:"nonce"`
}

// Challenge is the collector's answer.
type Challenge struct {
	Error   string `json:"error,omitempty"`
	Version int    `json:"version"`
	Nonce   []byte `json:"nonce"`
}

// Proof shows that its sender has the translator's key. It is empty where there
// are no keys.
type Proof struct {
	HMAC string `json:"hmac"` // hexadecimal
}

// errLineTooLong is returned for a line beyond its limit.
var errLineTooLong = errors.New("message is too long")

// The roles keep a proof of one side from being sent back as the other's. The
// prefix keeps both apart from DTA's MAC, which may use the same key: a datagram
// begins with the byte 0xd2.
const (
	roleTranslator = "weft rocev2 exchange: translator\x00"
	roleCollector  = "weft rocev2 exchange: collector\x00"
)

// exchange reads and writes the lines of one connection and keeps their digest.
type exchange struct {
	in     *bufio.Reader
	out    io.Writer
	digest hash.Hash
}

func newExchange(conn io.ReadWriter) *exchange {
	return &exchange{in: bufio.NewReaderSize(conn, 1<<10), out: conn, digest: sha256.New()}
}

// send writes a message as one line.
func (x *exchange) send(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	x.add(line)
	_, err = x.out.Write(line)
	return err
}

// receive reads a message of at most limit bytes. Memory grows with what arrives.
func (x *exchange) receive(message any, limit int) error {
	var line []byte
	for {
		part, err := x.in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return errLineTooLong
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	x.add(line)
	return json.Unmarshal(line, message)
}

// add appends a line to the digest, with its length, so that no two sequences of
// lines have the same.
func (x *exchange) add(line []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(line)))
	x.digest.Write(size[:])
	x.digest.Write(line)
}

// proof is the HMAC of all lines so far.
func (x *exchange) proof(role string, key keyfile.Key) []byte {
	mac := hmac.New(sha256.New, key.Secret[:])
	mac.Write([]byte(role))
	mac.Write(x.digest.Sum(nil))
	return mac.Sum(nil)
}

// prove sends the proof, or an empty one without a key.
func (x *exchange) prove(role string, key *keyfile.Key) error {
	if key == nil {
		return x.send(Proof{})
	}
	return x.send(Proof{HMAC: hex.EncodeToString(x.proof(role, *key))})
}

// verify reads the other side's proof and compares it in constant time.
func (x *exchange) verify(role string, key keyfile.Key) (ok bool, err error) {
	want := x.proof(role, key)
	var p Proof
	if err := x.receive(&p, maxRequest); err != nil {
		return false, err
	}
	got, err := hex.DecodeString(p.HMAC)
	return err == nil && hmac.Equal(got, want), nil
}

func newNonce() []byte {
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // never fails
	return b
}

// connect runs the translator's side. keys is nil without authentication; then
// the collector is not verified either.
func (x *exchange) connect(name string, keys Keys, req Request) (reply Reply, err error) {
	hello := Hello{Version: Version, Name: name, Nonce: newNonce()}
	var key *keyfile.Key
	if keys != nil {
		all := keys.Keys(name)
		if len(all) == 0 {
			return reply, fmt.Errorf("the key file has no key of %s, want one; weft keys check lists those without", name)
		}
		key = &all[0]
		hello.Key = &key.ID
	}
	var c Challenge
	if err := errors.Join(x.send(hello), x.receive(&c, maxRequest)); err != nil {
		return reply, err
	}
	switch {
	case c.Error != "":
		return reply, fmt.Errorf("collector answers %.200q", c.Error)
	case c.Version != Version || len(c.Nonce) != nonceSize:
		return reply, fmt.Errorf("collector speaks version %d of the exchange, want %d: use the same version of weft on both sides", c.Version, Version)
	}
	if err := errors.Join(x.send(req), x.prove(roleTranslator, key)); err != nil {
		return reply, err
	}
	if err := x.receive(&reply, maxReply); err != nil {
		return Reply{}, err
	}
	if err := reply.err(); key == nil && err != nil {
		return Reply{}, err
	}
	if key == nil { // the empty proof: whatever is read after it means the end
		return reply, x.receive(new(Proof), maxRequest)
	}
	ok, err := x.verify(roleCollector, *key)
	switch {
	case !ok && reply.Error == notAuthenticated:
		return Reply{}, fmt.Errorf("collector does not know %v of %s, want it in the key files of both sides", key, name)
	case !ok && reply.Error != "":
		return Reply{}, fmt.Errorf("collector answers %.200q", reply.Error)
	case err != nil:
		return Reply{}, err
	case !ok:
		return Reply{}, fmt.Errorf("the collector does not prove that it has %v of %s: it runs without --keys, has another key file, or is an impostor", key, name)
	}
	return reply, reply.err()
}

// err returns the error of a refused request.
func (r Reply) err() error {
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// caller is what the collector learns of a translator before it replies.
type caller struct {
	name string
	key  *keyfile.Key // the key that it proved; nil without authentication
	req  Request
}

// authenticate runs the collector's side up to the translator's proof. The error
// is a *refusedError if the translator is at fault.
func (x *exchange) authenticate(keys Keys) (c caller, err error) {
	var hello Hello
	if err := x.receive(&hello, maxRequest); err != nil {
		return c, refuseMessage(err)
	}
	c.name = hello.Name
	switch {
	case hello.Version != Version:
		return c, x.refuseHello(BadVersion, fmt.Sprintf("version %d of the exchange, want %d: use the same version of weft on both sides", hello.Version, Version))
	case keyfile.CheckName(hello.Name) != nil || len(hello.Nonce) != nonceSize:
		return c, x.refuseHello(Malformed, "hello without name or nonce")
	case keys != nil && hello.Key == nil:
		return c, x.refuseHello(NoKey, "this collector admits translators with keys only, want weft translate --keys")
	}
	if err := x.send(Challenge{Version: Version, Nonce: newNonce()}); err != nil {
		return c, refuseMessage(err)
	}
	if err := x.receive(&c.req, maxRequest); err != nil {
		return c, refuseMessage(err)
	}
	if keys == nil {
		// A proof cannot be checked. A translator that has a key notices that this
		// collector has none.
		return c, refuseMessage(x.receive(new(Proof), maxRequest))
	}
	// A name without keys is checked with a random one, so that neither the
	// answer nor its time differs.
	why, key := UnknownName, keyfile.Key{Secret: [32]byte(newNonce())}
	if all := keys.Keys(hello.Name); len(all) > 0 {
		why = UnknownKey
		if i := slices.IndexFunc(all, func(k keyfile.Key) bool { return k.ID == *hello.Key }); i >= 0 {
			why, key = WrongProof, all[i]
		}
	}
	ok, err := x.verify(roleTranslator, key)
	if err != nil {
		return c, refuseMessage(err)
	}
	if !ok {
		return c, errors.Join(&refusedError{why: why}, x.send(Reply{Error: notAuthenticated}))
	}
	c.key = &key
	return c, nil
}

// notAuthenticated is all that a stranger learns.
const notAuthenticated = "not authenticated"

// refuseHello answers a Hello that cannot be accepted.
func (x *exchange) refuseHello(why Refusal, text string) error {
	return errors.Join(&refusedError{why: why, detail: text}, x.send(Challenge{Error: text, Version: Version}))
}
