package serve

import "github.com/weft-telemetry/weft/ingest/sources"

// retentionKey is the section of ages by kind of record.
const retentionKey = "store.retention"

// itemList is a list of mappings.
type itemList struct {
	key, about string
	fields     []itemField
	read       func(*decoder, item) error
}

// itemField is a key of the items of a list.
type itemField struct {
	key, about string
	list       bool     // several values
	words      []string // that it may have; none: any
}

func (l *itemList) keys() (list []string) {
	for i := range l.fields {
		list = append(list, l.fields[i].key)
	}
	return list
}

// itemLists are the lists of a file.
var itemLists = []itemList{
	{"switches", "what the topology does not contain of switches", switchFields(), (*decoder).switchItem},
	{"jobs", "work that several hosts do together; incidents name the jobs that they affect", []itemField{
		{key: "name", about: "of the job"}, {key: "hosts", about: "hosts of the job", list: true}, {key: "prefixes", about: "its addresses", list: true},
	}, (*decoder).job},
	{"api.tenants", "who sees the flows of some addresses only", []itemField{
		{key: "name", about: "of the tenant"},
		{key: "token", about: "at least 16 characters"},
		{key: "prefixes", about: "addresses of the tenant", list: true},
		{key: "hosts", about: "hosts of the tenant", list: true},
	}, (*decoder).tenant},
	{"api.users", "tokens with a name and a role", []itemField{
		{key: "name", about: "who, for the audit log"},
		{key: "role", about: "what the user may do", words: []string{"viewer", "operator", "admin"}},
		{key: "token", about: "at least 16 characters"},
	}, (*decoder).user},
	{"alerts.targets", "where alerts are sent", []itemField{
		{key: "kind", about: "of the receiver", words: []string{"alertmanager", "webhook"}},
		{key: "url", about: "http or https"},
		{key: "token", about: "sent as a bearer token"},
		{key: "token_file", about: "file with the token, read again on a reload"},
		{key: "jobs", about: "jobs whose incidents it receives; none: all incidents", list: true},
	}, (*decoder).alertTarget},
}

// switchFields are the name of a switch, and the keys that sources give to it.
func switchFields() []itemField {
	list := []itemField{{key: "name", about: "of a switch of the topology"}}
	for _, src := range sources.All() {
		for _, k := range src.SwitchKeys {
			list = append(list, itemField{key: k.Key, about: k.Want})
		}
	}
	return list
}
