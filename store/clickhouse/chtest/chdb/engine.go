package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef void *(*connect_fn)(int, char **);
typedef void *(*query_fn)(void *, const char *, size_t, const char *, size_t);
typedef void *(*buffer_fn)(void *);
typedef size_t (*length_fn)(void *);

static void *call_connect(void *f, int argc, char **argv) { return ((connect_fn)f)(argc, argv); }
static void *call_query(void *f, void *conn, const char *q, size_t n, const char *format, size_t m) {
	return ((query_fn)f)(*(void **)conn, q, n, format, m);
}
static void *call_buffer(void *f, void *result) { return ((buffer_fn)f)(result); }
static size_t call_length(void *f, void *result) { return ((length_fn)f)(result); }
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// engine is ClickHouse in a library, loaded at run time. It does one query at a time.
type engine struct {
	mu                                   sync.Mutex
	database                             string // in use
	conn                                 unsafe.Pointer
	query, buffer, length, fail, destroy unsafe.Pointer
}

// openEngine loads the library and opens the databases below a path.
func openEngine(library, path string) (*engine, error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	lib := C.dlopen(name, C.RTLD_NOW)
	if lib == nil {
		return nil, errors.New(C.GoString(C.dlerror()))
	}
	e := &engine{}
	var connect unsafe.Pointer
	for symbol, to := range map[string]*unsafe.Pointer{
		"chdb_connect": &connect, "chdb_query_n": &e.query, "chdb_result_buffer": &e.buffer,
		"chdb_result_length": &e.length, "chdb_result_error": &e.fail, "chdb_destroy_query_result": &e.destroy,
	} {
		s := C.CString(symbol)
		*to = C.dlsym(lib, s)
		C.free(unsafe.Pointer(s))
		if *to == nil {
			return nil, fmt.Errorf("%s has no %s", library, symbol)
		}
	}
	args := []*C.char{C.CString("clickhouse"), C.CString("--path=" + path)} // kept as long as the process
	argv := (**C.char)(C.malloc(C.size_t(len(args)) * C.size_t(unsafe.Sizeof(args[0]))))
	copy(unsafe.Slice(argv, len(args)), args)
	if e.conn = C.call_connect(connect, C.int(len(args)), argv); e.conn == nil {
		return nil, fmt.Errorf("cannot open %s", path)
	}
	return e, nil
}

// do answers a query in the format Native, without the revision of a client. mu is held.
func (e *engine) do(query []byte) ([]byte, error) {
	const format = "Native"
	q, f := C.CBytes(query), C.CString(format)
	defer C.free(q)
	defer C.free(unsafe.Pointer(f))
	result := C.call_query(e.query, e.conn, (*C.char)(q), C.size_t(len(query)), f, C.size_t(len(format)))
	if result == nil {
		return nil, errors.New("no result")
	}
	defer C.call_buffer(e.destroy, result)
	if text := C.call_buffer(e.fail, result); text != nil {
		return nil, errors.New(C.GoString((*C.char)(text)))
	}
	n := C.call_length(e.length, result)
	if n == 0 {
		return nil, nil
	}
	return C.GoBytes(C.call_buffer(e.buffer, result), C.int(n)), nil
}
