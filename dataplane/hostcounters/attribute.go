package hostcounters

import (
	"encoding/binary"
	"fmt"
)

// eachAttribute passes the attributes of a netlink message, or of one that nests others, to
// visit, in their order. Values are not copied.
func eachAttribute(b []byte, visit func(kind uint16, value []byte) error) error {
	const header, align, kindMask = 4, 4, 1<<14 - 1 // the upper bits say nested, and big-endian
	for at := 0; at < len(b); {
		if len(b)-at < header {
			return fmt.Errorf("%d bytes after the last attribute, want none or %d", len(b)-at, header)
		}
		length, kind := int(binary.NativeEndian.Uint16(b[at:])), binary.NativeEndian.Uint16(b[at+2:])&kindMask
		if length < header || length > len(b)-at {
			return fmt.Errorf("attribute %d at byte %d has a length of %d, want %d to %d", kind, at, length, header, len(b)-at)
		}
		if err := visit(kind, b[at+header:at+length]); err != nil {
			return err
		}
		at += (length + align - 1) &^ (align - 1)
	}
	return nil
}

// attributeU32 and attributeU8 are values of attributes.
func attributeU32(kind uint16, value []byte) (uint32, error) {
	if len(value) != 4 {
		return 0, fmt.Errorf("attribute %d has %d bytes, want 4", kind, len(value))
	}
	return binary.NativeEndian.Uint32(value), nil
}

func attributeU8(kind uint16, value []byte) (uint8, error) {
	if len(value) != 1 {
		return 0, fmt.Errorf("attribute %d has %d bytes, want 1", kind, len(value))
	}
	return value[0], nil
}

// attributeText is a value that ends with a zero byte.
func attributeText(value []byte) string {
	for i, c := range value {
		if c == 0 {
			return string(value[:i])
		}
	}
	return string(value)
}
