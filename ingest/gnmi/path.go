package gnmi

import (
	"strconv"

	gnmipb "github.com/openconfig/gnmi/proto/gnmi"
)

// element is one part of a path, with the only key that Weft's paths have.
type element struct{ name, key string }

// maxElements is the length of the longest path that is looked at.
const maxElements = 12

// flatten appends prefix and path. It is false for paths that are too long.
func flatten(list []element, paths ...*gnmipb.Path) ([]element, bool) {
	for _, p := range paths {
		//lint:ignore SA1019 switches with gNMI before 0.4 send nothing else
		old := p.GetElement()
		if len(list)+len(p.GetElem())+len(old) > maxElements {
			return nil, false
		}
		for _, e := range p.GetElem() {
			one := element{name: e.GetName()}
			for _, v := range e.GetKey() {
				one.key = v
			}
			list = append(list, one)
		}
		for _, name := range old {
			list = append(list, element{name: name})
		}
	}
	return list, true
}

// value is that of an update: JSON, or a scalar as text.
type value struct {
	json   []byte
	scalar string
}

// valueOf returns the value of an update.
func valueOf(u *gnmipb.Update) (v value, ok bool) {
	switch t := u.GetVal().GetValue().(type) {
	case *gnmipb.TypedValue_JsonIetfVal:
		v.json = t.JsonIetfVal
	case *gnmipb.TypedValue_JsonVal:
		v.json = t.JsonVal
	case *gnmipb.TypedValue_StringVal:
		v.scalar = t.StringVal
	case *gnmipb.TypedValue_AsciiVal:
		v.scalar = t.AsciiVal
	case *gnmipb.TypedValue_UintVal:
		v.scalar = strconv.FormatUint(t.UintVal, 10)
	case *gnmipb.TypedValue_IntVal:
		v.scalar = strconv.FormatInt(t.IntVal, 10)
	default:
		return v, false
	}
	return v, true
}
