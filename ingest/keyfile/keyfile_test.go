package keyfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// seeded is a reproducible source of keys.
func seeded() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{7}) }

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestParse(t *testing.T) {
	ones := strings.Repeat("01", 32)
	f, err := Parse("k", []byte("# comment\n\n tor0 1 "+zeros+"\ntor1\t9 "+ones+" # of the second rack\ntor0 2 "+ones+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Names(), f.Keys("tor0"), f.Keys("tor1"), f.Keys("tor2")); got != "[tor0 tor1] [key 1 key 2] [key 9] []" {
		t.Errorf("the file holds %s", got)
	}
	if k := f.Keys("tor1")[0]; k.Secret[0] != 1 || k.Secret[31] != 1 {
		t.Error("the secret of tor1 is not that of its line")
	}
	if got := fmt.Sprint(f.SharedSecrets()); got != "[[tor0 tor1]]" {
		t.Errorf("SharedSecrets() = %s; want tor0 and tor1", got)
	}
}

func TestParseErrorsNameTheLineAndNoSecret(t *testing.T) {
	secret := strings.Repeat("5e", 32)
	good := "tor0 1 " + secret + "\n"
	for in, want := range map[string]string{
		"\ntor0 1\n":                                    "k:2: 2 fields, want NAME KEYID HEX",
		"tor0 1 " + secret + " x\n":                     "k:1: 4 fields",
		"tor0 256 " + secret + "\n":                     "k:1: key id is not",
		secret + " tor0 1\n":                            "k:1: key id is not",
		"tor0 -1 " + secret + "\n":                      "k:1: key id is not",
		"tor0 1 " + secret[:62] + "\n":                  "k:1: secret of tor0 has 62 characters, want 64",
		"tor0 1 " + secret[:62] + "zz\n":                "k:1: secret of tor0 is not hexadecimal",
		good + good:                                     "k:2: the key of tor0 repeats",
		good + "tor0 2 " + secret + "\n":                "k:2: the key of tor0 repeats",
		good + "tor0 2 " + zeros + "\n" + good:          "k:3: a third key of tor0",
		strings.Repeat("n", 256) + " 1 " + zeros + "\n": "k:1: name of 256 bytes",
		"a\x00b 1 " + zeros + "\n":                      "k:1: name",
		strings.Repeat("x", 70_000):                     "k: bufio.Scanner: token too long",
	} {
		_, err := Parse("k", []byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%.80q) = %v; want %s", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "5e5e") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestFileThatOthersCanReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := Generate([]string{"tor0"}, nil).Write(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if _, err := Read(path); err != nil {
		t.Errorf("Read = %v; want the keys", err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o601} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("Read of mode %#o = %v; want a refusal that says what to do", mode, err)
		}
	}
	if _, err := Read(path + "x"); err == nil || !strings.HasPrefix(err.Error(), path+"x: ") {
		t.Errorf("Read of no file = %v; want its path", err)
	}
}

func TestWriteKeepsAnExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	first := Generate([]string{"tor0", "h1", "tor0"}, seeded())
	if err := first.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := Generate([]string{"tor0"}, nil).Write(path); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second Write = %v; want a refusal", err)
	}
	got, err := Read(path)
	if err != nil || !reflect.DeepEqual(got, first) {
		t.Errorf("the file holds %v, %v; want the first keys", got, err)
	}
	if err := Generate([]string{"a b"}, nil).Write(path + "2"); err == nil {
		t.Error("Write of a name with a space = nil; want an error")
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%d files; want no temporary one left", len(all))
	}
}

func TestRotationKeepsThePreviousKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	random := seeded()
	f := Generate([]string{"tor0", "tor1"}, random)
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	first := f.Keys("tor0")[0]
	if err := f.Rotate(random, "tor0", "tor0"); err != nil {
		t.Fatal(err)
	}
	if k := f.Keys("tor0"); len(k) != 2 || k[1] != first || k[0].ID != 2 || k[0].Secret == first.Secret {
		t.Errorf("after a rotation tor0 has %v; want a new key first, the previous second", k)
	}
	if k := f.Keys("tor1"); len(k) != 1 {
		t.Errorf("tor1 has %v; want it left alone", k)
	}
	second := f.Keys("tor0")[0]
	if err := f.Rotate(random); err != nil {
		t.Fatal(err)
	}
	if k := f.Keys("tor0"); len(k) != 2 || k[1] != second || k[0].ID != 3 {
		t.Errorf("after a second rotation tor0 has %v; want the first key dropped", k)
	}
	if err := f.Replace(path); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("Replace wrote %v, %v; want %v", got, err, f)
	}
	if n, err := f.Retire("tor0"); n != 1 || err != nil || len(f.Keys("tor0")) != 1 || f.Keys("tor0")[0].ID != 3 {
		t.Errorf("Retire = %d, %v and %v; want key 3 alone", n, err, f.Keys("tor0"))
	}
	if err := f.Rotate(random, "tor0", "x"); err == nil || len(f.Keys("tor0")) != 1 {
		t.Errorf("Rotate of an unknown name = %v; want an error, and nothing changed", err)
	}
	if _, err := f.Retire("x"); err == nil {
		t.Error("Retire of an unknown name = nil; want an error")
	}
	if err := f.Replace(path + "x"); err == nil {
		t.Error("Replace of no file = nil; want an error")
	}
}

func TestKeyIDsWrap(t *testing.T) {
	f := Generate([]string{"tor0"}, seeded())
	for range 600 {
		if err := f.Rotate(nil); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("k", f.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReplaceKeepsASymbolicLink(t *testing.T) {
	dir := t.TempDir()
	f := Generate([]string{"tor0"}, nil)
	if err := f.Write(filepath.Join(dir, "real")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v; want a link", info.Mode(), err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	k := Generate([]string{"tor0"}, seeded()).Keys("tor0")[0]
	j, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprintf("%v %+v %#v %s %x", k, k, k, k, []any{j})
	hex, decimal := fmt.Sprintf("%x", k.Secret[:4]), fmt.Sprint(k.Secret[:4])
	if strings.Contains(all, hex) || strings.Contains(all, decimal[1:len(decimal)-1]) {
		t.Errorf("a key prints as %s", all)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("tor0 1 " + zeros + "\n# x\ntor0 2 " + strings.Repeat("ab", 32)))
	f.Add(Generate([]string{"tor0", "h1"}, seeded()).AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		file, err := Parse("k", in)
		if err != nil {
			return
		}
		text := file.AppendTo(nil)
		again, err := Parse("k", text)
		if err != nil || !reflect.DeepEqual(again, file) {
			t.Fatalf("%q parses as %v, and its text as %v, %v", in, file, again, err)
		}
		if b := again.AppendTo(nil); !bytes.Equal(b, text) {
			t.Fatalf("text %q, then %q", text, b)
		}
		for _, name := range file.Names() {
			if n := len(file.Keys(name)); n < 1 || n > KeysPerName {
				t.Fatalf("%q: %d keys of %q", in, n, name)
			}
		}
	})
}
