package command

import "cmp"

// Telling is an answer that says in one word what has become of the work, or how something is. Without the word it says nothing,
// whatever else stands in it.
type Telling interface{ Told() string }

// Told implements Telling.
func (r BackupReport) Told() string { return string(r.State) }

// Told implements Telling.
func (r LoadReport) Told() string { return string(r.State) }

// Told implements Telling.
func (r ExtensionReport) Told() string { return string(r.State) }

// Told implements Telling.
func (p ExtensionProof) Told() string { return string(p.State) }

// Told implements Telling, also of the reports that have a Look.
func (l Look) Told() string { return string(l.State) }

// Told implements Telling.
func (r FollowReport) Told() string { return string(r.State) }

// Told implements Telling.
func (r BackupReading) Told() string { return string(r.State) }

// Told implements Telling.
func (s LoginState) Told() string { return string(s.Condition) }

// Told implements Telling: by its stage, or how it has ended.
func (r DrillReport) Told() string { return cmp.Or(string(r.Stage), string(r.Outcome)) }
