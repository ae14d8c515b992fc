// Package core assembles a controller with everything around it, once: event
// loop, batch writer, store maintenance, health and API. Where reports come from
// is its Input: sockets (control/serve), a recording (control/serve), or a
// simulator (scenario/live). The analyses are analyze's, the rules control's.
package core
