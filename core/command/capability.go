package command

import (
	"reflect"
	"slices"
	"strings"
)

// AskCapabilities asks an agent what it is and knows. It answers while PostgreSQL is down too.
type AskCapabilities struct {
	Returns[Capabilities] `json:"-"`
}

// Capabilities names the agent's version, its routes, the commands that it knows, and the programs that it works with.
type Capabilities struct {
	Version string   `json:"version"`
	Routes  []string `json:"routes"`
	// Commands are the kinds that the agent knows and, as Needs writes them, steps and fields that were added later.
	Commands []string `json:"commands"`
	// Programs are those that the agent works with. An agent of an earlier version does not name them.
	Programs []Program `json:"programs"`
	// Connections is how many connections the customers' databases can have together: max_connections without what is kept for
	// superusers, for the agent and for PgBouncer's own questions. It is left out while PostgreSQL does not answer; an agent of
	// an earlier version never says it.
	Connections int `json:"connections,omitempty"`
	// Installation tells the server that the agent is in charge of from every other one, by whichever address it is reached. It is
	// left out as Connections is.
	Installation string `json:"installation,omitempty"`
	// Standing is what the agent knows of its server without looking; an agent of an earlier version does not say.
	Standing *Standing `json:"standing,omitempty"`
	// Reasons say why the server is not well: those of the health report that are not harmless, each a code and a line. An agent of
	// an earlier version does not say.
	Reasons []string `json:"reasons,omitempty"`
}

// Standing is how a server stands.
type Standing struct {
	InCharge  bool `json:"inCharge"`  // the agent is in charge of the server and has confirmed that within ten seconds
	Postgres  bool `json:"postgres"`  // PostgreSQL answers the agent
	PgBouncer bool `json:"pgbouncer"` // PgBouncer answered when the agent last looked
}

// Program is PostgreSQL, PgBouncer or pg_dump on the agent's server.
type Program struct {
	Name string `json:"name"`
	// Version is what the program says of itself; empty until it has answered.
	Version string `json:"version"`
	// Floor is the oldest version of the same series without known holes.
	Floor string `json:"floor"`
	// BelowFloor says that the version is older than that. Holes are then the identifiers of what is known of it, and Accepted
	// says that the operator has accepted this very version.
	BelowFloor bool     `json:"belowFloor"`
	Accepted   bool     `json:"accepted"`
	Holes      []string `json:"holes"`
}

// Route implements Question.
func (AskCapabilities) Route() Route { return Route{Method: "GET", Path: "/v1/capabilities"} }

// Check implements Question.
func (AskCapabilities) Check() error { return nil }

// known to every agent that this version speaks to: nothing is ever added here. What is not listed is sent only to agents that
// name it.
var known = []string{
	"database.ensure", "database.access", "database.allowlist", "backup.run", "operation.close",
	"login.ensure", "login.ensure/prepared", "login.ensure/open", "login.ensure/rotate", "login.ensure/revoke",
	"login.ensure/expire", "login.ensure/remove",
}

// Needs lists what an agent must name in its capabilities before c may be sent to it: its kind, its step as "kind/step", and
// those of its fields that are set and have the tag `agent:"later"`, as "kind.field".
func Needs(c Command) []string {
	v := reflect.ValueOf(c)
	return words(c, []string{Step(c)}, func(field int) bool { return !v.Field(field).IsZero() })
}

// latest is every command that this version sends.
var latest = []Command{
	EnsureDatabase{}, SetAccess{}, SetAllowlist{}, Configure{}, PrepareRole{}, AdmitRole{}, ChangeLogin{}, RemoveRole{}, Backup{},
	ChangeExtension{}, QualifyExtension{}, Load{}, Switch{}, Discard{}, Isolate{}, Rejoin{}, Purge{}, EnsureOverlay{}, Close{},
}

// Missing lists what this version may send and an agent does not know that has named these.
func Missing(named []string) (words []string) {
	for _, c := range latest {
		for _, word := range Offers(c) {
			if !slices.Contains(named, word) && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// Offers lists what an agent names that carries out the commands of c's type: what Needs may ask for.
func Offers(c Command) []string {
	return words(c, Steps(c), func(int) bool { return true })
}

// Steps lists the steps of the commands of c's type.
func Steps(c Command) []string {
	if s, ok := c.(interface{ Steps() []string }); ok {
		return s.Steps()
	}
	return []string{Step(c)}
}

func words(c Command, steps []string, takes func(field int) bool) []string {
	kind := string(c.About().Kind)
	all := []string{kind}
	for _, step := range steps {
		if step != kind {
			all = append(all, kind+"/"+step)
		}
	}
	for i, t := 0, reflect.TypeOf(c); i < t.NumField(); i++ {
		if t.Field(i).Tag.Get("agent") == "later" && takes(i) {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			all = append(all, kind+"."+name)
		}
	}
	return slices.DeleteFunc(all, func(word string) bool { return slices.Contains(known, word) })
}
