package command

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// The commands of this file have a database back as it was at a moment, in a server beside the live one, and look at it there.
// Each starts its work, resumes it after a crash, or reports its progress, and returns at once. ReasonNotRecoverable: the archive
// does not have the moment. Closing the operation ends the work, and leaves nothing of it.

// Rescue puts tables of the database as it was into the schema recovery.RescueSchema of the database as it is: all of them in one
// transaction, or none. The schema is the owner's. The tables have columns and rows only.
type Rescue struct {
	Returns[RescueReport] `json:"-"`
	DatabaseID            id.DatabaseID    `json:"databaseId"`
	At                    time.Time        `json:"at"`
	Tables                []recovery.Table `json:"tables"`
	// MaxBytes is how large the database may become.
	MaxBytes int64 `json:"maxBytes"`
}

// About implements Command.
func (c Rescue) About() About { return ofDatabase("moment.rescue", c.DatabaseID, 1) }

// Check implements Command.
func (c Rescue) Check() error {
	if len(c.Tables) == 0 || c.MaxBytes <= 0 || c.At.IsZero() {
		return Refuse(ReasonInvalid, "a rescue has a moment, tables and a size")
	}
	return checkDatabase(c.DatabaseID)
}

// LookState says whether the work of an agent in a server beside runs or has ended.
type LookState string

// The states of such work.
const (
	LookRunning LookState = "running"
	LookDone    LookState = "done"
	LookFailed  LookState = "failed" // nothing came of it
)

// UnmarshalText refuses an unknown state: it does not say what became of the work.
func (s *LookState) UnmarshalText(text []byte) (err error) {
	*s, err = oneOf(text, LookRunning, LookDone, LookFailed)
	return err
}

// Look is what the reports of all such work have. Its stages are those of recovery.Stages, and then one of its own.
type Look struct {
	State    LookState `json:"state"`
	Stage    string    `json:"stage"`
	Progress int       `json:"progress"`
	Bytes    Bytes     `json:"bytes,omitzero"`
	// Reason is of LookFailed. ReasonInvalid: what was asked for cannot be, and Field says what of it. ReasonNameTaken: the schema
	// exists. ReasonTooLarge: it would be larger than MaxBytes.
	Reason  Reason `json:"reason,omitempty"`
	Field   string `json:"field,omitempty"`   // of ReasonInvalid
	Message string `json:"message,omitempty"` // of LookFailed; fit for the customer
}

// Standing implements Looked.
func (l Look) Standing() Look { return l }

// bound makes of what an agent says something that can be shown.
func (l *Look) bound() {
	l.Progress, l.Bytes = min(max(l.Progress, 0), 100), l.Bytes.bounded()
	if l.State == LookFailed && !slices.Contains(Reasons, l.Reason) {
		l.Reason = ReasonFailed
	}
}

// Looked is a report of such work.
type Looked interface{ Standing() Look }

// RescueReport is the progress or result of a Rescue.
type RescueReport struct {
	Look
	Tables []recovery.Rescued `json:"tables,omitempty"` // in the order of the command
	Notes  []string           `json:"notes,omitempty"`  // fit for the customer
}

// UnmarshalJSON takes a reason that this version does not know for ReasonFailed, and bounds the rest.
func (r *RescueReport) UnmarshalJSON(text []byte) error {
	type fields RescueReport
	if err := json.Unmarshal(text, (*fields)(r)); err != nil {
		return err
	}
	r.bound()
	r.Notes = boundedNotes(r.Notes)
	return nil
}

// CompareMoments says how what the database held at two moments differs, in tables, columns and numbers of rows.
type CompareMoments struct {
	Returns[ComparisonReport] `json:"-"`
	DatabaseID                id.DatabaseID `json:"databaseId"`
	From                      time.Time     `json:"from"`
	To                        time.Time     `json:"to"`
}

// About implements Command.
func (c CompareMoments) About() About { return ofDatabase("moment.compare", c.DatabaseID, 1) }

// Check implements Command.
func (c CompareMoments) Check() error {
	if c.From.IsZero() || !c.To.After(c.From) {
		return Refuse(ReasonInvalid, "the second moment must be later than the first")
	}
	return checkDatabase(c.DatabaseID)
}

// ComparisonReport is the progress or result of CompareMoments.
type ComparisonReport struct {
	Look
	Comparison *recovery.Comparison `json:"comparison,omitempty"` // of LookDone
}

// UnmarshalJSON takes a reason that this version does not know for ReasonFailed, and bounds the rest.
func (r *ComparisonReport) UnmarshalJSON(text []byte) error {
	type fields ComparisonReport
	err := json.Unmarshal(text, (*fields)(r))
	r.bound()
	return err
}

// FindMoment finds the second from which on the answer of a query fulfils a comparison. The query is one statement that gives one
// value; it is run with the rights of the database's owner, and changes nothing. ReasonInvalid in the report, with Field "query":
// PostgreSQL refuses it, it takes too long or too much, or it gives something else.
type FindMoment struct {
	Returns[SearchReport] `json:"-"`
	DatabaseID            id.DatabaseID `json:"databaseId"`
	From                  time.Time     `json:"from"`
	To                    time.Time     `json:"to"`
	// Gaps are those of the archive, in which nothing is looked for.
	Gaps []recovery.Gap `json:"gaps,omitempty"`
	// Question is secret: an agent never stores it.
	Question recovery.Question `json:"-"`
}

// Secrets are the question.
func (c FindMoment) Secrets() map[string]string {
	q := c.Question
	return map[string]string{"query": q.Query, "until": q.Until, "key": base64.StdEncoding.EncodeToString(q.Key)}
}

func (c *FindMoment) receive(e Envelope) {
	c.Question = recovery.Question{Query: e.Secrets["query"], Until: e.Secrets["until"]}
	c.Question.Key, _ = base64.StdEncoding.DecodeString(e.Secrets["key"]) // Check refuses what is no key
}

// About implements Command.
func (c FindMoment) About() About { return ofDatabase("moment.find", c.DatabaseID, 1) }

// Check implements Command.
func (c FindMoment) Check() error {
	if c.From.IsZero() || !c.To.After(c.From) {
		return Refuse(ReasonInvalid, "the second moment must be later than the first")
	}
	if _, err := recovery.ParseUntil(c.Question.Until); err != nil {
		return Refuse(ReasonInvalid, "until %s", err.Error())
	}
	if len(c.Question.Key) != recovery.KeyBytes {
		return Refuse(ReasonInvalid, "the key of a search has %d bytes, not %d", len(c.Question.Key), recovery.KeyBytes)
	}
	return checkDatabase(c.DatabaseID)
}

// SearchReport is the progress or result of a FindMoment.
type SearchReport struct {
	Look
	Sealed []byte `json:"sealed,omitempty"` // the result, of LookDone; recovery.Question.Open decrypts it
}

// UnmarshalJSON takes a reason that this version does not know for ReasonFailed, and bounds the rest.
func (r *SearchReport) UnmarshalJSON(text []byte) error {
	type fields SearchReport
	err := json.Unmarshal(text, (*fields)(r))
	r.bound()
	return err
}
