package client

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// queryParams encodes a query type of package api by its struct tags. It skips zero
// fields, for which the server has defaults.
func queryParams(query any) url.Values {
	v := url.Values{}
	addQueryParams(v, reflect.ValueOf(query))
	return v
}

func addQueryParams(v url.Values, s reflect.Value) {
	for i := range s.NumField() {
		f, t := s.Field(i), s.Type().Field(i)
		if t.Anonymous {
			addQueryParams(v, f)
			continue
		}
		name := t.Tag.Get("query")
		if name == "" || f.IsZero() {
			continue
		}
		switch x := f.Interface().(type) {
		case time.Time:
			v.Set(name, x.UTC().Format(time.RFC3339Nano))
		case []string:
			v.Set(name, strings.Join(x, ","))
		default:
			v.Set(name, fmt.Sprint(x))
		}
	}
}
