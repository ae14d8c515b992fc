// Package keyfile reads and writes the file of secret keys that reporters and
// translators share with their collector. One line is one key:
//
//	# name  key id  32 bytes in hexadecimal
//	tor0    1       8f3c…
//
// A name is a node of the topology or a translator. It has at most two keys: the
// first listed signs, both verify, so that keys can be rotated while reports
// arrive. What the keys sign is wire/dta's and ingest/rocev2's concern.
package keyfile

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weft-telemetry/weft/internal/fileerror"
)

// KeysPerName is the maximum number of keys of a name: the present one, and the
// previous or the next.
const KeysPerName = 2

// maxSize and maxName limit a file and the bytes of a name: 64 MiB hold the keys
// of 300,000 nodes.
const (
	maxSize = 64 << 20
	maxName = 255
)

// Key is one secret key. It prints as its id alone.
type Key struct {
	ID     uint8    `json:"id"`
	Secret [32]byte `json:"-"`
}

// String returns the id, so that no log or error shows the secret.
func (k Key) String() string { return "key " + strconv.Itoa(int(k.ID)) }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// File is the content of a key file. Readers may share it; Rotate and Retire
// change it.
type File struct {
	names []string // in the order of the file
	keys  map[string][]Key
}

// Read reads a key file. Its owner alone may have access to it.
func Read(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	if p := info.Mode().Perm(); p&0o077 != 0 {
		return nil, fileerror.Errorf(path, 0, "mode %#o, want %#o: others may read the keys; run chmod 600 and replace the keys (weft keys rotate) if they did",
			p, p&0o700)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	return Parse(path, b)
}

// Parse parses the content of a key file; errors call it path.
func Parse(path string, b []byte) (*File, error) {
	if len(b) > maxSize {
		return nil, fileerror.Errorf(path, 0, "more than %d bytes, want a key file", maxSize)
	}
	f := &File{keys: map[string][]Key{}}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if err := f.addLine(fields); err != nil {
			return nil, fileerror.Errorf(path, n, "%v", err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fileerror.Errorf(path, 0, "%v, want lines NAME KEYID HEX", err)
	}
	return f, nil
}

// addLine adds the key of one line. Errors show no part of what may be a secret.
func (f *File) addLine(fields []string) error {
	if len(fields) != 3 {
		return fmt.Errorf("%d fields, want NAME KEYID HEX", len(fields))
	}
	name := fields[0]
	if err := CheckName(name); err != nil {
		return err
	}
	id, err := strconv.ParseUint(fields[1], 10, 8)
	if err != nil {
		return errors.New("key id is not a number from 0 to 255, want NAME KEYID HEX")
	}
	k := Key{ID: uint8(id)}
	if len(fields[2]) != hex.EncodedLen(len(k.Secret)) {
		return fmt.Errorf("secret of %s has %d characters, want %d hexadecimal digits", name, len(fields[2]), hex.EncodedLen(len(k.Secret)))
	}
	if _, err := hex.Decode(k.Secret[:], []byte(fields[2])); err != nil {
		return fmt.Errorf("secret of %s is not hexadecimal, want %d hexadecimal digits", name, hex.EncodedLen(len(k.Secret)))
	}
	had := f.keys[name]
	if len(had) == KeysPerName {
		return fmt.Errorf("a third key of %s, want at most %d: the one that signs, and the previous", name, KeysPerName)
	}
	if len(had) == 1 && (had[0].ID == k.ID || had[0].Secret == k.Secret) {
		return fmt.Errorf("the key of %s repeats id or secret of its other one, want both to differ", name)
	}
	if len(had) == 0 {
		f.names = append(f.names, name)
	}
	f.keys[name] = append(had, k)
	return nil
}

// CheckName returns an error unless name can stand in a key file.
func CheckName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("name of %d bytes, want 1 to %d of UTF-8", len(name), maxName)
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return r == '#' || unicode.IsSpace(r) || !unicode.IsPrint(r) }); i >= 0 {
		return fmt.Errorf("name %q, want no spaces, '#' or control characters", name)
	}
	return nil
}

// Keys returns the keys of a name, the one that signs first; nil if it has none.
// The caller must not change them.
func (f *File) Keys(name string) []Key { return f.keys[name] }

// Generation is always 0: the keys of a File are not read again as those of a Ring.
func (f *File) Generation() uint64 { return 0 }

// Names returns the names that have keys, in the order of the file.
func (f *File) Names() []string { return slices.Clone(f.names) }

// SharedSecrets returns the names whose keys others have too, in groups: who has
// the file's lines of one can pass for another.
func (f *File) SharedSecrets() (groups [][]string) {
	owners := map[[32]byte][]string{}
	for _, name := range f.names {
		for _, k := range f.keys[name] {
			owners[k.Secret] = append(owners[k.Secret], name)
		}
	}
	for _, names := range owners {
		if len(names) > 1 {
			groups = append(groups, names)
		}
	}
	slices.SortFunc(groups, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return groups
}

// Generate returns a file with one new key for each name. Randomness is read
// from r, or from the operating system if r is nil; an r that fails panics, since
// a key that is not random must not exist.
func Generate(names []string, r io.Reader) *File {
	f := &File{keys: map[string][]Key{}}
	for _, name := range names {
		if f.keys[name] == nil {
			f.names = append(f.names, name)
			f.keys[name] = []Key{newKey(1, r)}
		}
	}
	return f
}

// Rotate adds a new key to each of the names, or to all if there are none. The
// new key signs, the one that signed before still verifies, an older one is
// dropped. r is as in Generate. An unknown name is an error and changes nothing.
func (f *File) Rotate(r io.Reader, names ...string) error {
	names, err := f.selected(names)
	if err != nil {
		return err
	}
	for _, name := range names {
		signed := f.keys[name][0]
		f.keys[name] = []Key{newKey(signed.ID+1, r), signed}
	}
	return nil
}

// Retire drops the previous keys of the names, or of all if there are none, and
// returns how many. An unknown name is an error and changes nothing.
func (f *File) Retire(names ...string) (dropped int, err error) {
	names, err = f.selected(names)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		dropped += len(f.keys[name]) - 1
		f.keys[name] = f.keys[name][:1:1]
	}
	return dropped, nil
}

// selected returns names without repetitions, or all names of the file.
func (f *File) selected(names []string) ([]string, error) {
	if len(names) == 0 {
		return f.names, nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if f.keys[name] == nil {
			return nil, fmt.Errorf("keyfile: %s has no key, want a name of the file", name)
		}
	}
	return names, nil
}

func newKey(id uint8, r io.Reader) Key {
	if r == nil {
		r = rand.Reader
	}
	k := Key{ID: id}
	if _, err := io.ReadFull(r, k.Secret[:]); err != nil {
		panic(fmt.Sprintf("keyfile: source of randomness: %v", err))
	}
	return k
}
