// Package siege tests a whole service while others attack it: a process with real
// sockets, a real store and a real API, an honest fabric that reports to it, and
// senders that lie, flood and replay beside that fabric. The tests are the whole
// of it; SECURITY.md has the threat model that they check.
package siege
